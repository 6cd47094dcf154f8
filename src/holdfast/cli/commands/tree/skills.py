"""`holdfast skills`: adding, listing, reading, finding, checking, removing and publishing skills."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from holdfast.cli import help_texts, options, output
from holdfast.cli.commands.search import AsJson
from holdfast.cli.commands.sessions import confirm
from holdfast.cli.output import Column
from holdfast.errors import InvalidArgumentError
from holdfast.model.tree.skills import SkillSource, SkillUses

app = help_texts.group(
    "Manage skills: folders with a file SKILL.md that tells an agent how to do something. A skill belongs to a user,"
    " until an admin publishes it to the account."
)

SKILLS = (
    Column("name", lambda row: row.name),
    Column("published", lambda row: "yes" if row.published else None),
    Column("calls", lambda row: row.uses.calls or None, align_right=True),
    Column("successes", lambda row: row.uses.successes or None, align_right=True),
    Column("last used", lambda row: row.uses.last_used_at),
    Column("description", lambda row: row.description, shrinks=True),
)
FOUND = (
    Column("score", lambda row: f"{row.score:.2f}", align_right=True),
    Column("name", lambda row: row.name),
    Column("uri", lambda row: row.uri),
    Column("description", lambda row: row.description, shrinks=True),
)
INSTALLED = (
    Column("name", lambda row: row.name),
    Column("action", lambda row: row.action),
    Column("files", lambda row: row.auxiliary_files + 1, align_right=True),
    Column("uri", lambda row: row.uri),
    Column("description", lambda row: row.description, shrinks=True),
)
PROBLEMS = (
    Column("rule", lambda row: row.rule),
    Column("field", lambda row: row.field),
    Column("problem", lambda row: row.message, shrinks=True),
)

SkillName = Annotated[str, typer.Argument(metavar="NAME", help="The name of the skill.", show_default=False)]
Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A folder with SKILL.md, the file SKILL.md, a zip archive, a JSON file with the definition of an MCP tool,"
        " or - for standard input.",
        show_default=False,
    ),
]
Published = Annotated[bool, typer.Option("--published", help="Change the published skill, as an admin of the account.")]
Wait = Annotated[bool, typer.Option("--wait", help="Return when the skill can be found by a search.")]


@app.command("list", epilog=help_texts.example("skills list", "skills list --published"))
def list_(
    ctx: typer.Context,
    published: Annotated[bool, typer.Option("--published", help="List only the published skills.")] = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="The maximum number of skills.")] = 1_000,
    as_json: AsJson = False,
) -> None:
    """List your skills, then those that are published to the account, and how often you used them."""
    _use_json(ctx, as_json=as_json)
    with options.get(ctx).open_client() as client:
        found = client.list_skills(limit=limit, target_uri=_target(published=published))
    output.print_rows(ctx, found.skills, SKILLS, found, empty="There are no skills.")
    if found.has_more:
        output.print_notice("There are more skills; use a larger --limit.")


@app.command(epilog=help_texts.example("skills show code-review", "skills show code-review --level 0"))
def show(
    ctx: typer.Context,
    name: SkillName,
    level: Annotated[
        int | None,
        typer.Option(
            "--level",
            "-L",
            metavar="N",
            min=0,
            max=2,
            help="0: the abstract, 1: the overview, 2: SKILL.md.",
            show_default=False,
        ),
    ] = None,
    published: Annotated[bool, typer.Option("--published", help="Show the published skill, not your own.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show a skill: what it says, its files, and how often you used it.

    Your own skill hides a published one with the same name.
    """
    _use_json(ctx, as_json=as_json)
    with options.get(ctx).open_client() as client:
        skill = client.get_skill(name, level=_level(level), target_uri=_target(published=published))
    text = {0: skill.abstract, 1: skill.overview, 2: skill.content}.get(level if level is not None else -1)
    if text is not None and options.get(ctx).is_table:
        output.print_text(ctx, text, exact=True)
        return
    texts = {"uses": _describe_uses(skill.uses), "source": _describe_source(skill.source)}
    hidden = ("type", "content", "overview", "files", "root_uri", "description")
    output.print_details(ctx, skill, exclude=hidden, texts=texts)
    if options.get(ctx).is_table:
        output.print_rows(ctx, skill.files or [], (Column("file", lambda row: row.path), Column("size", _size)))
        output.print_text(ctx, f"\n{skill.content or ''}")


@app.command(
    epilog=help_texts.example(
        "skills add ./code-review",
        "skills add tool.json",
        "skills add ./many-skills --skill review --skill deploy",
        "skills add ./many-skills --list",
    )
)
def add(
    ctx: typer.Context,
    source: Source,
    skill: Annotated[
        list[str] | None,
        typer.Option(
            "--skill",
            "-s",
            metavar="NAME",
            help="Add only this skill of several; * for all. Repeatable.",
            show_default=False,
        ),
    ] = None,
    list_only: Annotated[bool, typer.Option("--list", "-l", help="Only list the skills in the source.")] = False,
    published: Published = False,
    wait: Wait = False,
) -> None:
    """Add a skill, or replace the one with the same name. Every change is a version, which `restore` brings back.

    SKILL.md begins with front matter: a line `---`, then `name: ...` and `description: ...`, then a line `---`.
    """
    data = _read_source(source)
    with options.get(ctx).open_client(run_tasks=True) as client:
        added = client.add_skill(
            data, skills=skill or None, list_only=list_only, target_uri=_target(published=published), wait=wait
        )
    output.print_rows(ctx, added.skills, INSTALLED, added)
    _print_warnings(added.warnings)


@app.command(epilog=help_texts.example("skills update code-review ./code-review"))
def update(
    ctx: typer.Context, name: SkillName, source: Source, published: Published = False, wait: Wait = False
) -> None:
    """Replace a skill that exists. Files that the source does not have are removed."""
    data = _read_source(source)
    with options.get(ctx).open_client(run_tasks=True) as client:
        updated = client.update_skill(name, data, target_uri=_target(published=published), wait=wait)
    output.print_result(ctx, updated, f"Updated {updated.uri}.")
    _print_warnings(updated.warnings)


@app.command(epilog=help_texts.example("skills remove code-review", "skills remove old-one other --yes"))
def remove(
    ctx: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of skills.", show_default=False)],
    published: Published = False,
    yes: help_texts.Yes = False,
) -> None:
    """Remove skills with their files. Their versions are kept, so that they can be restored."""
    confirm(f"Remove {', '.join(names)}?", yes=yes)
    with options.get(ctx).open_client() as client:
        removed = [client.remove_skill(name, target_uri=_target(published=published)) for name in names]
    output.print_rows(ctx, removed, (Column("removed", lambda row: row.uri), Column("files", _deleted_count)))


@app.command(epilog=help_texts.example('skills find "review a pull request"'))
def find(
    ctx: typer.Context,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What the skill should do.", show_default=False)],
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="The maximum number of skills.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Find skills by what they say, best first."""
    _use_json(ctx, as_json=as_json)
    with options.get(ctx).open_client() as client:
        found = client.find_skills(query, limit)
    output.print_rows(
        ctx,
        found.skills,
        FOUND,
        found,
        empty=f"No skill was found for {query!r}. A new skill can be found some seconds after it is added.",
    )


@app.command(epilog=help_texts.example("skills validate ./code-review", "skills validate SKILL.md --strict"))
def validate(
    ctx: typer.Context,
    source: Source,
    strict: Annotated[
        bool, typer.Option("--strict", help="Demand everything that the specification of agent skills demands.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check a skill, and store nothing. The exit code is 1 if it is not valid."""
    _use_json(ctx, as_json=as_json)
    path = Path(source)
    file = path / "SKILL.md" if path.is_dir() else path
    folder = file.resolve().parent.name if file.name == "SKILL.md" else None
    data = _read_source(source if source == "-" else str(file))
    text = _read_text(data) if isinstance(data, Path) else data
    with options.get(ctx).open_client() as client:
        result = client.validate_skill(text, strict=strict, skill_dir_name=folder)
    output.print_rows(ctx, [*result.errors, *result.warnings], PROBLEMS, result)
    if options.get(ctx).is_table:
        output.print_notice(f"{result.name or source} is {'valid' if result.valid else 'not valid'}.")
    if not result.valid:
        raise typer.Exit(1)


@app.command(epilog=help_texts.example("skills publish code-review", "skills publish code-review --of bob"))
def publish(
    ctx: typer.Context,
    name: SkillName,
    user_id: Annotated[
        str | None,
        typer.Option("--of", metavar="USER_ID", help="The user whose skill it is. Default: you.", show_default=False),
    ] = None,
) -> None:
    """Publish a skill to the account, as an admin: every user can read a copy. Again, to update the copy."""
    with options.get(ctx).open_client() as client:
        published = client.publish_skill(name, user_id=user_id)
    output.print_result(ctx, published, f"Published {published.source_uri} as {published.uri}.")


@app.command(epilog=help_texts.example("skills unpublish code-review"))
def unpublish(ctx: typer.Context, name: SkillName) -> None:
    """Remove a published skill, as an admin. The skill of its user stays."""
    with options.get(ctx).open_client() as client:
        unpublished = client.unpublish_skill(name)
    output.print_result(ctx, unpublished, f"Removed {unpublished.uri}.")


def _use_json(ctx: typer.Context, *, as_json: bool) -> None:
    if as_json:
        options.get(ctx).output = "json"


def _target(*, published: bool) -> str:
    return "viking://system/skills" if published else ""


def _level(level: int | None) -> Literal[0, 1, 2] | None:
    return None if level is None else (0, 1, 2)[level]


def _size(row: Any) -> int | None:
    return row.size or None


def _describe_uses(uses: SkillUses) -> str:
    if not uses.calls:
        return "none"
    successes = output.count(uses.successes, "success", "successes")
    last = f", the last one at {output.format_value(uses.last_used_at)}" if uses.last_used_at else ""
    return f"{output.count(uses.calls, 'call')}, {successes}{last}"


def _describe_source(source: SkillSource | None) -> str:
    return "" if source is None else " ".join(part for part in (source.type, source.source, source.path) if part)


def _deleted_count(row: Any) -> int:
    count: int = row.estimated_deleted_count
    return count


def _read_source(source: str) -> Path | str:
    """Return a path to upload, or a text: standard input, or a JSON file."""
    if source == "-":
        return sys.stdin.read()
    path = Path(source)
    return _read_text(path) if path.suffix == ".json" and path.is_file() else path


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgumentError("source", f"{str(path)!r} cannot be read as a text: {error}") from None


def _print_warnings(warnings: list[Any]) -> None:
    for warning in warnings:
        output.print_notice(f"Warning: {warning.message}.")
