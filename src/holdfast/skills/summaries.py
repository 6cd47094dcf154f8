"""The overview of a skill: what it is for, and the headings of its instructions."""

from holdfast.skills.definition import SkillDefinition

MAX_HEADINGS = 40
MAX_HEADING_CHARS = 120
_FENCES = ("```", "~~~")


def overview_of(abstract: str, skill: SkillDefinition) -> str:
    """Return the description of a skill, its tools and its headings, as Markdown."""
    lines = [abstract]
    if skill.compatibility:
        lines += ["", f"Needs: {skill.compatibility}"]
    if skill.allowed_tools:
        lines += ["", f"Tools: {', '.join(skill.allowed_tools[:MAX_HEADINGS])}"]
    headings = headings_of(skill.body)
    if headings:
        lines += ["", *headings]
    return "\n".join(lines)


def headings_of(body: str) -> list[str]:
    r"""Return the headings of a Markdown text as an indented list. Lines of code are left out.

    >>> headings_of("# Search\n```\n# comment\n```\n## Steps")
    ['- Search', '  - Steps']
    """
    headings: list[str] = []
    fence = ""
    for line in body.split("\n"):
        begin = line.lstrip()[:3]
        if begin in _FENCES and (not fence or begin == fence):
            fence = "" if fence else begin
            continue
        mark, space, title = line.partition(" ")
        if fence or not space or not mark or mark.strip("#") or len(mark) > 6:  # noqa: PLR2004 - levels of headings
            continue
        headings.append(f"{'  ' * (len(mark) - 1)}- {title.strip().rstrip('#').strip()[:MAX_HEADING_CHARS]}")
        if len(headings) == MAX_HEADINGS:
            break
    return headings
