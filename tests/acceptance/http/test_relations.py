"""Relations over HTTP, as published clients ask for them: a body on DELETE."""

from pathlib import Path

import httpx2

from holdfast.testing.server import running_server


def test_a_relation_is_deleted_by_a_body_or_by_a_query(tmp_path: Path) -> None:
    with running_server(tmp_path) as server, httpx2.Client(base_url=f"{server.url}/api/v1", timeout=30) as http:
        first, second = "viking://resources/a.md", "viking://resources/b c.md"
        for uri in (first, second):
            assert http.post("/content/write", json={"uri": uri, "content": "x"}).status_code == 200
        pair = {"from_uri": first, "to_uri": second}
        for sent in ({"json": pair}, {"params": pair}):
            linked = http.post("/relations/link", json={"from_uri": first, "to_uris": second, "reason": "why"})
            assert linked.json()["result"] == {"from": first, "to": [second]}
            (relation,) = http.get("/relations", params={"uri": first}).json()["result"]
            assert (relation["uri"], relation["reason"]) == (second, "why")
            deleted = http.request("DELETE", "/relations/link", **sent)  # type: ignore[arg-type]
            assert deleted.json()["result"] == {"from": first, "to": second}
            assert http.get("/relations", params={"uri": first}).json()["result"] == []
        for body, status in (("[]", 400), ("{", 400), ('{"from_uri": "viking://resources/a.md"}', 400)):
            assert http.request("DELETE", "/relations/link", content=body).status_code == status
        assert http.request("DELETE", "/relations/link", json=pair).status_code == 404
