"""Relations over HTTP, as published clients ask for them: a body on DELETE."""

from pathlib import Path

import httpx2

import holdfast
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


def test_a_part_of_a_file_cannot_be_changed_and_relations_follow_moves_but_not_names(tmp_path: Path) -> None:
    with (
        running_server(tmp_path, root_api_key="key") as server,
        holdfast.connect(server.url, api_key="key") as operator,
    ):
        operator.admin.create_account("acme", "admin")

        def alice() -> httpx2.Client:
            key = operator.admin.create_user("acme", "alice").user_key
            return httpx2.Client(base_url=f"{server.url}/api/v1", headers={"X-API-Key": key}, timeout=30)

        with alice() as http:
            names = ("resources/x.md", "resources/a/c.md", "resources/b/c.md", "~/resources/own.md")
            x, a, b, own = (f"viking://{name}" for name in names)
            for uri in (x, a, b, own):
                assert http.post("/content/write", json={"uri": uri, "content": "text"}).status_code == 200
            assert http.post("/content/write", json={"uri": f"{x}#1", "content": ""}).status_code == 400
            assert http.delete("/fs", params={"uri": f"{x}#1"}).status_code == 400
            assert http.get("/content/read", params={"uri": x}).json()["result"] == "text"
            http.post("/relations/link", json={"from_uri": x, "to_uris": [a, b]})
            http.post("/relations/link", json={"from_uri": own, "to_uris": x, "reason": "secret"})
            http.delete("/fs", params={"uri": "viking://resources/b", "recursive": True})
            move = {"from_uri": "viking://resources/a", "to_uri": "viking://resources/b"}
            assert http.post("/fs/mv", json=move).status_code == 200
            assert [each["uri"] for each in http.get("/relations", params={"uri": x}).json()["result"]] == [b]
        operator.admin.delete_user("acme", "alice")
        with alice() as http:
            assert http.post("/content/write", json={"uri": own, "content": "new"}).status_code == 200
            assert http.get("/relations", params={"uri": own}).json()["result"] == []
