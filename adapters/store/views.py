"""Views that make the file pleasant in any SQLite browser. Each counts what a session did itself.

What a fork has inherited stands in the rows of the session that it came from. A sum over all rows is
what was paid. Unknown is NULL: a cost if the price of any call is unknown, passed and failed tests if
there is no report of them. Runs of a script alone are no runs of tests.
"""

from __future__ import annotations

MODEL_CALLS = """
    CREATE VIEW model_calls AS
    SELECT session, seq, at, source AS state, name AS event,
        json_extract(data, '$.answer.model') AS model,
        json_extract(data, '$.answer.finish_reason') AS finish_reason,
        json_extract(data, '$.answer.usage.input_tokens') AS input_tokens,
        json_extract(data, '$.answer.usage.output_tokens') AS output_tokens,
        json_extract(data, '$.answer.cost') AS cost,
        coalesce(json_extract(data, '$.answer.seconds'), json_extract(data, '$.failure.seconds'))
            AS seconds,
        json_extract(data, '$.failure.reason') AS failure
    FROM events
    WHERE request_key IS NOT NULL
        AND (name = 'call_failed' OR json_type(data, '$.answer') = 'object')
"""

TEST_RUNS = """
    CREATE VIEW test_runs AS
    SELECT session, seq, at, name AS event, dest AS leads_to,
        json_array_length(data, '$.run.report.results') AS tests,
        (SELECT sum(json_extract(value, '$.outcome') = 'passed')
            FROM json_each(events.data, '$.run.report.results')) AS passed,
        (SELECT sum(json_extract(value, '$.outcome') = 'failed')
            FROM json_each(events.data, '$.run.report.results')) AS failed,
        json_extract(data, '$.run.exit_status') AS exit_status,
        json_extract(data, '$.run.timed_out') AS timed_out,
        json_extract(data, '$.run.out_of_memory') AS out_of_memory,
        json_extract(data, '$.run.seconds') AS seconds
    FROM events
    WHERE name LIKE 'tests_%' AND json_type(data, '$.run') = 'object'
"""

SESSION_SUMMARY = """
    CREATE VIEW session_summary AS
    SELECT s.id AS session, s.name, s.workflow, s.state, s.seq AS events, s.parent, s.parent_seq,
        s.started_at, s.updated_at,
        (SELECT name FROM events e WHERE e.session = s.id AND e.seq = s.seq) AS last_event,
        (SELECT count(*) FROM test_runs r WHERE r.session = s.id) AS test_runs,
        count(c.seq) AS calls,
        coalesce(sum(c.input_tokens), 0) AS input_tokens,
        coalesce(sum(c.output_tokens), 0) AS output_tokens,
        CASE WHEN count(c.seq) = count(c.cost) THEN coalesce(sum(c.cost), 0) END AS cost
    FROM sessions s LEFT JOIN model_calls c ON c.session = s.id AND c.failure IS NULL
    WHERE s.seq > coalesce(s.parent_seq, 0)
    GROUP BY s.id
    ORDER BY s.started_at
"""

SCRIPTS_TOO = TEST_RUNS.replace(
    "WHERE name LIKE 'tests_%' AND", "WHERE (name LIKE 'tests_%' OR name = 'script_failed') AND"
)
"""Runs of tests that passed before the script itself failed, too."""

VIEWS = tuple(" ".join(view.split()) for view in (MODEL_CALLS, TEST_RUNS, SESSION_SUMMARY))
"""In the order in which they can be made; on one line each, because their text is in every file."""

WITH_SCRIPTS = ("DROP VIEW test_runs", " ".join(SCRIPTS_TOO.split()))
