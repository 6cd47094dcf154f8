"""`holdfast grep`, `glob`, `tags`, `link`, `unlink` and `relations`: patterns, tags and relations of the tree."""

from typing import Annotated

import typer

from holdfast.cli import help_texts, options, output
from holdfast.cli.output import Column
from holdfast.model.tree.attributes import Attributes, Relation, TagMode, TagsSet
from holdfast.model.tree.patterns import GrepMatch

app = typer.Typer()
tags = help_texts.group("The tags of files and folders.")
SCHEME = "viking://"

Uri = Annotated[
    str, typer.Argument(metavar="URI", help="A file or a folder, such as viking://resources/guide.", show_default=False)
]
Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", help="The maximum number of matches.")]
Tag = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="TAG", help="Search only what has this tag. May be repeated.", show_default=False),
]


GREP_COLUMNS = (
    Column("uri", lambda row: row.uri),
    Column("line", lambda row: row.line, align_right=True),
    Column("content", lambda row: row.content, shrinks=True),
)
RELATION_COLUMNS = (
    Column("uri", lambda row: row.uri),
    Column("since", lambda row: row.created_at),
    Column("reason", lambda row: row.reason, shrinks=True),
)


@app.command(
    epilog=help_texts.example(
        "grep viking://resources 'time ?out'", "grep viking://session/chat_001 --ignore-case refund --context 2"
    )
)
def grep(
    ctx: typer.Context,
    uri: Uri,
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", help="A regular expression.", show_default=False)],
    ignore_case: Annotated[bool, typer.Option("--ignore-case", "-i", help="Ignore upper and lower case.")] = False,
    context: Annotated[
        int, typer.Option("--context", "-C", metavar="N", help="The number of lines around each match.")
    ] = 0,
    exclude: Annotated[
        str | None, typer.Option("--exclude", metavar="URI", help="Leave out this folder.", show_default=False)
    ] = None,
    tag: Tag = None,
    limit: Limit = 256,
) -> None:
    """Find lines of files by a regular expression.

    Look-around and backreferences are not supported: every search takes linear time.
    """
    _check_order(uri, pattern, f"holdfast grep {SCHEME}resources 'time ?out'")
    with options.get(ctx).open_client() as client:
        found = client.grep(
            uri,
            pattern,
            case_insensitive=ignore_case,
            before_context=context,
            after_context=context,
            exclude_uri=exclude,
            tags=tag,
            node_limit=limit,
        )
    if context > 0 and found.matches and options.get(ctx).is_table:
        output.print_text(ctx, _lines_with_context(found.matches))
    else:
        output.print_rows(ctx, found.matches, GREP_COLUMNS, found, empty=f"No line in {uri} matches {pattern!r}.")
    if found.truncated:
        output.print_notice(f"There may be more matches: {found.hint}.")


@app.command(epilog=help_texts.example("glob '**/*.md'", "glob 'guide/**/*.{md,txt}' viking://resources"))
def glob(
    ctx: typer.Context,
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", help="Such as **/*.md.", show_default=False)],
    uri: Annotated[
        str, typer.Argument(metavar="[URI]", help="The folder to search. Default: the root.", show_default=False)
    ] = "viking://",
    tag: Tag = None,
    limit: Limit = 256,
) -> None:
    """Find files and folders by a pattern of their paths.

    `*` and `?` match in a name, `**` any number of folders; `[a-z]` is one character and `{a,b}` one of two texts.
    """
    _check_order(uri, pattern, f"holdfast glob '**/*.md' {SCHEME}resources")
    with options.get(ctx).open_client() as client:
        found = client.glob(pattern, uri, tags=tag, node_limit=limit)
    if found.matches and options.get(ctx).is_table:
        output.print_text(ctx, "".join(f"{match}\n" for match in found.matches))
    else:
        output.print_rows(ctx, found.matches, (), found, empty=f"Nothing in {uri} matches {pattern!r}.")
    if found.truncated:
        output.print_notice("There may be more matches; search a folder, or use a larger --limit.")


@tags.command(epilog=help_texts.example("tags show viking://resources/guide"))
def show(ctx: typer.Context, uri: Uri) -> None:
    """Show the tags of a file or a folder."""
    with options.get(ctx).open_client() as client:
        attributes: Attributes = client.attributes(uri)
    output.print_result(ctx, attributes, ", ".join(attributes.attrs.tags) or "There are no tags.")


@tags.command(
    name="set",
    epilog=help_texts.example(
        "tags set viking://resources/guide team=ops draft", "tags set viking://resources/guide --clear --recursive"
    ),
)
def set_tags(
    ctx: typer.Context,
    uri: Uri,
    given: Annotated[
        list[str] | None, typer.Argument(metavar="[TAG]...", help="Words, or key=value.", show_default=False)
    ] = None,
    append: Annotated[bool, typer.Option("--append", help="Keep the tags that are there.")] = False,
    clear: Annotated[bool, typer.Option("--clear", help="Remove all tags.")] = False,
    recursive: Annotated[bool, typer.Option("--recursive", "-r", help="Also tag everything below a folder.")] = False,
) -> None:
    """Set the tags of a file or a folder. They replace those that are there."""
    mode: TagMode = "clear" if clear else "append" if append else "replace"
    with options.get(ctx).open_client() as client:
        result = client.set_tags(uri, given or [], mode=mode, recursive=recursive)
    output.print_result(ctx, result, _describe_tags(result))


@app.command(
    epilog=help_texts.example("link viking://resources/guide viking://session/chat_001 --reason 'decided there'")
)
def link(
    ctx: typer.Context,
    uri: Uri,
    targets: Annotated[list[str], typer.Argument(metavar="TO_URI...", help="Other addresses.", show_default=False)],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why they are related.")] = "",
) -> None:
    """Relate an address to others."""
    with options.get(ctx).open_client() as client:
        result = client.link(uri, targets, reason=reason)
    output.print_result(ctx, result, f"Related {result.from_uri} to {', '.join(result.to_uris)}.")


@app.command(epilog=help_texts.example("unlink viking://resources/guide viking://session/chat_001"))
def unlink(
    ctx: typer.Context,
    uri: Uri,
    target: Annotated[str, typer.Argument(metavar="TO_URI", help="The other address.", show_default=False)],
) -> None:
    """Remove the relation of an address to another one."""
    with options.get(ctx).open_client() as client:
        result = client.unlink(uri, target)
    output.print_result(ctx, result, f"Removed the relation of {result.from_uri} to {result.to_uri}.")


@app.command(epilog=help_texts.example("relations viking://resources/guide"))
def relations(ctx: typer.Context, uri: Uri) -> None:
    """List the addresses that an address is related to."""
    with options.get(ctx).open_client() as client:
        found: list[Relation] = client.relations(uri)
    output.print_rows(ctx, found, RELATION_COLUMNS, empty=f"{uri} has no relations.")


def _check_order(uri: str, pattern: str, example: str) -> None:
    if pattern.startswith(SCHEME) and not uri.startswith(SCHEME):
        raise typer.BadParameter(f"they are in the wrong order; use: {example}", param_hint="URI and PATTERN")


def _lines_with_context(matches: list[GrepMatch]) -> str:
    """Return matches and the lines around them, below the address of their file, as `grep` marks them.

    A colon follows the number of a match, and a hyphen that of another line. Lines of several matches come once.
    """
    files: dict[str, dict[int, tuple[str, str]]] = {}
    for match in matches:
        lines = files.setdefault(match.uri, {})
        around = [*enumerate(match.before, match.line - len(match.before)), *enumerate(match.after, match.line + 1)]
        for number, text in around:
            lines.setdefault(number, ("-", text))
        lines[match.line] = (":", match.content)
    return "\n".join(_file_with_context(uri, lines) for uri, lines in files.items())


def _file_with_context(uri: str, lines: dict[int, tuple[str, str]]) -> str:
    shown = [uri]
    for number, (mark, text) in sorted(lines.items()):
        if len(shown) > 1 and number - 1 not in lines:
            shown.append("--")
        shown.append(f"{number}{mark}{text}")
    return "".join(f"{line}\n" for line in shown)


def _describe_tags(result: TagsSet) -> str:
    same = "no tags" if result.mode == "clear" else "these tags"
    changed = f"Changed the tags of {output.count(result.success_count, 'item')}."
    skipped = f"{output.count(result.skipped_count, 'item')} had {same} already."
    if not result.skipped_count:
        return changed
    return f"{changed} {skipped}" if result.success_count else f"Nothing changed: {skipped}"
