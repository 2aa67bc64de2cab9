"""Looking into savepoints and checkpoints, without Spark and without the program that made them."""
