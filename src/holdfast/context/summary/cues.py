"""The words by which a rule, a decision, a request, a result, an error or an open item is recognised."""

import re
from typing import NamedTuple


class Cue(NamedTuple):
    name: str
    gate: frozenset[str]
    """One of these English words must be there before the pattern is tried: most sentences have none."""
    english: re.Pattern[str]
    chinese: re.Pattern[str]


def _cue(name: str, gate: str, english: str, chinese: str) -> Cue:
    spaced = re.VERBOSE
    return Cue(name, frozenset(gate.split()), re.compile(english, spaced), re.compile(chinese, spaced))


_CUES = (
    _cue(
        "rule",
        """never always must mustn't not don't dont only under forbidden prohibited no limits without allergic
        allergy nobody strictly read off nothing""",
        r"""(?: (?: ^ | [,;:.(!\-\u2013\u2014]\s?
                | \b(?:please|and|but|also|should|must|shall|you|we|be|then)\s )
              (?:always|never)\s[a-z]+
          | \bmust(?:n't)?\b | \bunder\sno\scircumstances\b | \bno\s(?:more|less|later|fewer|earlier)\sthan\b
          | \b(?:forbidden|prohibited|strictly|off[-\s]limits|read[-\s]only|allerg(?:ic|y)|mandatory)\b
          | (?:\bnot|n't)\s(?:allowed|permitted|exceed|touch|be\s\w+ed)\b
          | (?:^|[,;:.(!\-\u2013\u2014]\s?|\b(?:please|and|but|also|you|so|then|just|still|to)\s)
            (?:do\snot|don't|dont)\s[a-z]+
          | \bwithout\s(?:my|our|asking|approval|permission)\b
          | \b(?:nobody|no\sone|nothing)\s(?:may|should|must|is\sallowed)\b
          | \bonly\s(?:if|when|after|with|via|through|during|the|in|on)\b | \bonly(?:,?\splease)?[.!]?$
          | (?:^|[,;:.(!\-\u2013\u2014]\s?|\b(?:please|and|but|so|then)\s)only\s[a-z]+
          | \bnot\s(?:before|after|until|to\sbe|without)\b
          | \bno\s\w+(?:\s\w+)?\s(?:without|before|after|in|on|during)\b )""",
        r"""不要|必须|禁止|永远|务必|不得|严禁|千万|一定要|切勿|只能|不许|绝不|绝对不|不可以|不准|不能
        |别(?:再|动|用|把|让|给|在)|仅限|始终|总是|不可|一律|勿|过敏|不超过|不低于|只(?:允许|准|用|读)""",
    ),
    _cue(
        "wish",
        """ensure sure avoid keep stay max maximum minimum budget limit deadline cap required requirement
        requirements have has needs need most least exactly remember important prefer should shouldn't
        can't cannot within latest every each all any note""",
        r"""\b(?: ensure | (?:make|be)\ssure | avoid | exactly
          | (?:keep|stay)\b.{0,60}\b(?:under|below|within|as\sis|unchanged|alone|short|out\sof)
          | (?:max(?:imum)?|minimum|budget|limit|deadline|cap)\b.{0,40}\d | required | requirements? | (?:has|have)\sto
          | needs?\sto\s(?:be|stay|remain|work|support|keep) | at\s(?:most|least) | (?:please|and|also)\sremember
          | important(?::|\sthat) | i(?:'d)?\sprefer | should(?:\snot|n't|\sbe|\sonly|\shave) | can't | cannot
          | by\sthe\slatest | within\s\d+ )
          | ^(?:remember|important|note)\b
          | ^(?:and\s|also\s|please\s)?(?!(?:we|you|they|it|i|in|at|for|of|with|after|on|not|is|are|that)\s)
            [a-z]+\s(?:every|each|all|any)\b""",
        r"确保|避免|保持|最多|至少|预算|上限|截止|要求|记住|注意|尽量|不应|应该|应当|以内|优先|需要保证",
    ),
    _cue(
        "decision",
        """decided decision decide go going use agreed agree chose choose chosen settled opt opted approved approve
        confirm confirmed instead switch switched plan keep rather pick picked proceed selected final
        finally adopt adopted""",
        r"""\b(?: decided | decision | agreed | chose | chosen | settled\son | opt(?:ed)?\sfor | approved?
          | switch(?:ed)?\s(?:to|from|over)
          | (?:let's|let\sus|we'll|we\swill|i'll|i\swill|going\sto|we\sshould|please)\s
            (?:go\swith|use|keep|switch|adopt|pick|choose|take|stick)
          | go(?:ing)?\swith | instead\sof | rather\sthan | the\splan\sis | pick(?:ed)? | selected | adopt(?:ed)?
          | proceed\swith | final(?:ly)?\s(?:choice|answer|version)
          | confirm(?:ed)?\b.{0,40}\b(?:option|plan|that\swe|go) )\b""",
        r"""决定|采用|选择|选用|就用|就选|改为|改成|改用|同意|批准|定为|定下|确定|敲定|那就|方案
        |按.{1,12}(?:执行|来|处理)|而不是""",
    ),
    _cue(
        "pending",
        """todo to-do next later still need needs remaining remains yet pending follow follow-up followup waiting
        tomorrow open unresolved outstanding blocked left monday tuesday wednesday thursday friday backlog
        unfinished unclear""",
        r"""\b(?: todo | to-do | next\s(?:steps?|up|week|i|we|is|thing|task) | next(?=:) | later | not\syet
        | yet\sto | pending
          | still\s(?:needs?|have|has|to|open|missing|pending|unclear|waiting|fails?|failing) | remain(?:s|ing)
          | follow[-\s]?ups? | waiting\s(?:for|on) | tomorrow | open\s(?:question|item|issue|point|task)s? | unresolved
          | outstanding | blocked | needs?\sto\sbe | left\sto\sdo | is\sleft | backlog | unfinished | unclear
          | (?:on|by|until|next)\s(?:monday|tuesday|wednesday|thursday|friday) )\b""",
        r"""待办|待(?:处理|确认|完成|定|修复|补|办|客户|用户|审批)|尚未|还没|还未|还要|还需|还剩|下一步|接下来
        |后续|稍后|未完成|明天|下周|等待|剩下
        |遗留|之后再|跟进|仍需|仍未|周[一二三四五]再""",
    ),
    _cue(
        "result",
        """fixed done completed complete succeeded success successful successfully passed passes deployed resolved
        found cause turns works booked confirmed refunded finished merged because created updated restored
        migrated verified dropped issued result results shows show sent concluded conclusion reason
        improved reduced increased applied removed added green identified again fell recovered renewed
        rose match matches""",
        r"""\b(?: fixed | done | completed? | succeeded | success(?:ful(?:ly)?)? | pass(?:ed|es) | deployed
        | resolved | found
          | (?:root\s)?cause | turns\sout | works(?:\snow|\sagain)? | booked | confirmed | refunded | finished | merged
          | because | created | updated | restored | migrated | verified | dropped\s(?:to|from) | issued | results?
          | shows?\sthat | sent | conclu(?:ded|sion) | the\sreason | improved | reduced | increased | applied | removed
          | added | green | identified | again | fell | recovered | renewed | rose | match(?:es)? )\b""",
        r"""完成|成功|修复|解决|原因|结果|通过|发现|显示|恢复正常|结论|上线了|搞定
        |已(?:经|将|为|部署|修|更新|创建|发送|提交|恢复|退款|处理|上线|回滚|验证|确认|导入|删除|合并|登记)""",
    ),
    _cue(
        "error",
        """error errors exception failed fails failing failure traceback timeout timed denied refused crash crashed
        crashes fatal panic unavailable conflict killed oom corrupt invalid broken bug rejected deadlock
        leak""",
        r"""\b(?: errors? | exception | fail(?:ed|s|ing|ure) | traceback | time(?:d\s)?-?out | denied | refused
          | crash(?:ed|es)? | fatal | panic | unavailable | conflict | killed | oom | corrupt | invalid | broken | bug
          | rejected | deadlock | leak )\b""",
        r"报错|失败|错误|异常|超时|崩溃|拒绝|不可用|故障|冲突|死锁|泄漏",
    ),
    _cue(
        "request",
        """can could would will please want need like help how what why when where which who find show write fix add
        check create update make run deploy explain book give look investigate review compare implement
        change remove tell get let's migrate set move rename search send draft prepare refund cancel
        analyse analyze figure trying looking""",
        r"""(?: ^ | [,;:.]\s
            | \b(?:and|then|now|so|also|first|finally|again|ok|okay|yes|hi|hello|hey|great|thanks|today)\s )
            (?:please\s|now\s|then\s)?
            (?: find | show | write | fix | add | check | create | update | make | run | deploy | explain | book
            | give | look
              | investigate | review | compare | implement | change | remove | tell | get | let's | migrate
              | set | move
              | rename | search | send | draft | prepare | refund | cancel | analy[sz]e )\b
          | \b(?:can|could|would|will)\syou\b | \bplease\b | \bi(?:'d|\swould)?\s(?:want|need|like)\b
          | \bwe\s(?:need|want)\b
          | \bhelp\sme\b | \?\s*$ | \bi'm\s(?:trying|looking)\b | \bfigure\sout\b""",
        r"""请|帮我|帮忙|我想|我要|能不能|能否|可以.{0,16}吗|需要|麻烦|希望|如何|怎么|为什么|什么|查一下|看一下
        |看看|吗\uff1f|吗\?|\uff1f$""",
    ),
    _cue(
        "blocked",
        "blocked cannot can't waiting permission access unable stuck approval",
        r"""\b(?: blocked | (?:cannot|can't|unable\sto)\s(?:proceed|continue|access|finish|go\son)
        | waiting\s(?:for|on)
          | no\s(?:access|permission) | stuck | needs?\s(?:your\s|their\s)?approval )\b""",
        r"""受阻|无法继续|卡住|等待.{0,10}(?:审批|批准|权限|回复|确认)|没有权限|需要.{0,8}(?:审批|批准)""",
    ),
)
_ONLY_TALK = re.compile(
    r"""\b(?: (?:don't|do\snot|dont)\s
          (?:know|think|see|have|worry|mind|understand|remember|believe|get|want\sto|like|feel
          |recall|really|care|need|you|we|they|i|hesitate|last|forget\sto)
      | never\s?mind | must\s(?:be\s(?:because|something|so)|have\sbeen|say|admit|feel)
      | (?:have|has|had|'ve)\s(?:never|always) | as\salways | not\s(?:only|always) | can\snever | you\snever\sknow
      | (?:always|never)\s(?:been|wanted|loved|thought|give\sup|seen|heard|tried|here|there|have|has|had|get|easy|so)
      | can(?:'t|not)\s(?:see|find|wait|believe|remember|tell|connect|reach|imagine|help)
      | have\sto\s(?:say|admit) | should\sbe\s(?:fine|ok|good|great|back) )\b | \bi(?:'m|'ll)?\s(?:always|never)\b""",
    re.VERBOSE,
)
_ONLY_TALK_ZH = re.compile(
    r"不要紧|能不能|要不要|必须要吗|可不可|不可能|不得不|不得了|不错|不知道|[区特分级识类性]别|别的|能不|不能.{0,12}吗"
)
_HAN = re.compile(r"[\u3400-\u9fff]")
_GIVEN = frozenset({"rule", "wish"})
_ASKED = ("?", "\uff1f", '?"', "吗")


def cues_of(text: str, words: frozenset[str]) -> frozenset[str]:
    """The names of the cues in a sentence.

    >>> sorted(cues_of("Never restart the database.", frozenset(["never", "restart", "the", "database"])))
    ['rule']
    """
    lower = text.lower().replace("\u2019", "'")
    found: set[str] = set()
    for cue in _CUES:
        if words.isdisjoint(cue.gate) and not (cue.name == "request" and "?" in lower):
            continue
        if cue.english.search(_ONLY_TALK.sub(" ", lower) if cue.name in _GIVEN else lower):
            found.add(cue.name)
    if _HAN.search(lower):
        told = _ONLY_TALK_ZH.sub(",", lower)
        found |= {cue.name for cue in _CUES if cue.chinese.search(told if cue.name in _GIVEN else lower)}
    if lower.endswith(_ASKED):
        found.add("question")
        found -= {"rule", "wish", "result", "decision"}
    return frozenset(found)
