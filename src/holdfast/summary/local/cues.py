"""Cues: words that mark a sentence as a decision, a request, a result, an error or an open item."""

import re
from typing import NamedTuple

from holdfast.text.scripts import HAN_AND_HEXAGRAMS


class Cue(NamedTuple):
    name: str
    gate_words: frozenset[str]
    """The English pattern is tried only if a sentence has one of these words. Most sentences have none."""
    english: re.Pattern[str]
    chinese: re.Pattern[str]


def _cue(name: str, gate_words: str, english: str, chinese: str) -> Cue:
    flags = re.VERBOSE
    return Cue(name, frozenset(gate_words.split()), re.compile(english, flags), re.compile(chinese, flags))


_CUES = (
    _cue(  # "we decided to use Redis"
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
    _cue(  # "the docs still need an update"
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
    _cue(  # "the root cause is a full disk"
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
    _cue(  # "the upload fails"
        "error",
        """error errors exception failed fails failing failure traceback timeout timed denied refused crash crashed
        crashes fatal panic unavailable conflict killed oom corrupt invalid broken bug rejected deadlock
        leak""",
        r"""\b(?: errors? | exception | fail(?:ed|s|ing|ure) | traceback | time(?:d\s)?-?out | denied | refused
          | crash(?:ed|es)? | fatal | panic | unavailable | conflict | killed | oom | corrupt | invalid | broken | bug
          | rejected | deadlock | leak )\b""",
        r"报错|失败|错误|异常|超时|崩溃|拒绝|不可用|故障|冲突|死锁|泄漏",
    ),
    _cue(  # "please check the logs"
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
    _cue(  # "I am waiting for access"
        "blocked",
        "blocked cannot can't waiting permission access unable stuck approval",
        r"""\b(?: blocked | (?:cannot|can't|unable\sto)\s(?:proceed|continue|access|finish|go\son)
        | waiting\s(?:for|on)
          | no\s(?:access|permission) | stuck | needs?\s(?:your\s|their\s)?approval )\b""",
        r"""受阻|无法继续|卡住|等待.{0,10}(?:审批|批准|权限|回复|确认)|没有权限|需要.{0,8}(?:审批|批准)""",
    ),
)
_HAN = re.compile(f"[{HAN_AND_HEXAGRAMS}]")
_QUESTION_ENDS = ("?", "\uff1f", '?"', "吗")


def find_cues(text: str, words: frozenset[str]) -> frozenset[str]:
    """Return the names of the cues in a sentence, whose words are `words`. A question has no result or decision.

    >>> sorted(find_cues("The database is restored.", frozenset(["the", "database", "is", "restored"])))
    ['result']
    """
    lower = text.lower().replace("\u2019", "'")
    names: set[str] = set()
    for cue in _CUES:
        if words.isdisjoint(cue.gate_words) and not (cue.name == "request" and "?" in lower):
            continue
        if cue.english.search(lower):
            names.add(cue.name)
    if _HAN.search(lower):
        names |= {cue.name for cue in _CUES if cue.chinese.search(lower)}
    if lower.endswith(_QUESTION_ENDS):
        names.add("question")
        names -= {"result", "decision"}
    return frozenset(names)
