"""The only room that knows PySpark: it gets a session and runs slots on it.

    session = session_for(None, "my job", {})      # the user's session, or a quiet one of ours
    launcher = SparkLauncher(session)              # what the JobManager talks to

A slot is one task of a Spark barrier stage: a Python worker process that Spark starts together
with its siblings and that stays in one function call for as long as the job lives.

- `session`, `settings`, `java`: where the session comes from
- `launcher`, `capacity`, `shipping`, `failures`: the driver's side of a launch
- `slot_task`, `slot_watch`: the side inside the task
"""
