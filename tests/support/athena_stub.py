"""A stub of Athena's HTTP interface: a query is queued, runs, and leaves a CSV with a quoted header in S3."""

import csv
import io
import json
from typing import Any

from aiohttp import web

from tests.support.servers import Aws

ROWS = [
    {
        "id": str(n),
        "language": "hi",
        "title": f'शीर्षक, "{n}"\nदूसरी पंक्ति',
        "updated_at": f"2026-11-{n % 28 + 1:02} 10:00:00.000",
    }
    for n in range(500)
]


class AthenaStub:
    """Answers StartQueryExecution and GetQueryExecution as Athena does.

    The attributes set the outcome of the queries: `ends` is their final state, `throttled` the number of calls that are
    throttled first, and `failed` the executions that fail.
    """

    def __init__(self, aws: Aws) -> None:
        self._s3 = aws.client("s3")
        self.queries: dict[str, dict[str, Any]] = {}
        self.rows: list[dict[str, str]] = ROWS
        self.columns = list(ROWS[0])
        self.ends = "SUCCEEDED"
        self.reason = ""
        self.retryable = False
        self.throttled = 0
        self.failed: set[str] = set()

    async def answer(self, request: web.Request) -> web.Response:
        call = request.headers["X-Amz-Target"].partition(".")[2]
        call_arguments = json.loads(await request.read())
        if self.throttled:
            self.throttled -= 1
            body = {"__type": "TooManyRequestsException", "message": "slow down"}
            return self._json(body, 400)
        if call == "StartQueryExecution":
            execution_id = f"query-{len(self.queries)}"
            self.queries[execution_id] = call_arguments | {"polls": 0}
            return self._json({"QueryExecutionId": execution_id})
        execution_id = call_arguments["QueryExecutionId"]
        if execution_id not in self.queries:
            return self._json({"__type": "InvalidRequestException", "message": "QueryExecution was not found"}, 400)
        query = self.queries[execution_id]
        query["polls"] += 1
        state = ("QUEUED", "RUNNING", self.ends)[min(query["polls"], 3) - 1]
        if execution_id in self.failed:
            state = "FAILED"
        location = f"{query['ResultConfiguration']['OutputLocation']}{execution_id}.csv"
        if state == "SUCCEEDED" and query["polls"] == 3:
            self._s3.put_object(Bucket="results", Key=location.removeprefix("s3://results/"), Body=self._csv(query))
        status = {"State": state, "StateChangeReason": self.reason, "AthenaError": {"Retryable": self.retryable}}
        return self._json(
            {
                "QueryExecution": {
                    "QueryExecutionId": execution_id,
                    "Status": status,
                    "ResultConfiguration": {"OutputLocation": location},
                }
            }
        )

    def _csv(self, query: dict[str, Any]) -> bytes:
        rows = self.rows
        if parameters := query.get("ExecutionParameters"):
            [since] = parameters
            assert since[0] == since[-1] == "'", f"Athena would read {since} as a column name"
            rows = [row for row in rows if row["updated_at"] >= since[1:24].replace("T", " ")]
        out = io.StringIO()
        writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([row[column] for column in self.columns if column in row] for row in rows)
        return out.getvalue().encode()

    def _json(self, body: object, status: int = 200) -> web.Response:
        return web.json_response(body, status=status, content_type="application/x-amz-json-1.1")
