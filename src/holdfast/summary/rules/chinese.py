"""Finds the clauses of standing rules and preferences in a Chinese sentence.

The comment beside a pattern is a text that it matches.
"""

# ruff: noqa: RUF001 - the punctuation of Chinese
import re

from holdfast.summary.rules.splitting import MAX_CLAUSE_CHARS, Clause, Segment, Sentence, has_quote
from holdfast.text.scripts import HAN_AND_HEXAGRAMS

HAN_PATTERN = re.compile(f"[{HAN_AND_HEXAGRAMS}]")
_RULE = re.compile(  # "不要用表格" (do not use tables)
    r"不要|必须|禁止|务必|不得(?!不|了)|严禁|千万|一定要|切勿|只能|不许|绝不|绝对不|不准|不允许|不可以|仅限|一律|不超过|不低于|不能超过|永远|始终|不耐受|吃不了|喝不了|吃不惯|受不了|从不|向来不?"
    r"|用不着|别超过|不可(?!能|以|思)|千篇一律"
    r"|别(?:再|动|用|把|让|给|在|碰|删|改)|只(?:允许|准|用|读|接受|看)|每[次回](?!我|他|她|一|都(?:是|会|跌|出|这|那)).{0,8}(?:要|请|先|给|把|用|别|不|附|写|带|加"
    r"|都)|凡是|今后|从现在(?:起|开始)|从今(?:天起|往后|以后)|过敏|最多|尽量"
    r"|(?:我|我们|本人)(?!妈|爸|姐|哥|弟|妹|同事|领导|老公|老婆|儿子|女儿|朋友).{0,8}(?:喜欢|偏好|偏爱|讨厌|倾向|习惯|受不了|不爱|宁愿|宁可|吃素|不吃|不喝|看重|注重|在意|讲究|追求"
    r"|更愿意|只吃|只喝|只用|只听|只看|只买|只穿|只坐|只住|只玩|只喝|最怕|怕|爱(?!人|好|心)|不碰|不坐|不看|不买|不抽|不开车|不穿|不熬夜|离不开|没兴趣|不感冒|不擅长|看不惯|吃不|一般不|一般都"
    r"|一般只|通常|基本(?:不|只|都)|平时(?:不|只|都)|信(?:佛|教|奉)|是(?:回民|回族|穆斯林|素食|左撇子|色盲|孕妇)|有(?:糖尿病|高血压|哮喘|乳糖|色盲|痛风|胃病|心脏病|关节炎|幽闭|恐高"
    r"|洁癖|选择困难)|恐高|晕车|晕船|血糖高|血压高|坐轮椅|在备孕|怀孕|哺乳期|更适合|就喜欢|比较(?:喜欢|看重|在意|怕|习惯)|对.{1,8}(?:没兴趣|无感|不感冒|不耐)|宁|只要.{1,12}(?:就行"
    r"|就好|就够))|素食|忌口|(?:涉及|任何|所有|凡).{0,12}不想"
    r"|以后(?:都|请|凡|的|所有|每|要|就|只|再也|一直|回|写|给|用|任何|遇到|涉及|如果)|(?:都|全部|统一|默认)(?:要|用(?!不|了|过)|先|按|采用|使用|写(?!在|了|着|的)"
    r"|以(?!为))|默认|原则上|保持"
    r"|不能(?:动|改|用|吃|喝|出现|有|删|碰|泄露|透露|修改|使用|涉及|包含|早于|晚于)|预算(?:是|为|在|控制)|控制在|上限|不接受|不考虑|优先|(?:跟我|对我|给我|和我)(?:说话|讲|解释|推荐"
    r"|回复|发).{0,10}(?:不用|不必|别|直接|要|就|尽量|用)|(?:不用|不必|不需要)(?:跟我|给我|那么|这么|每次|再)|直接(?:叫我|称呼|说结论|给结论|给代码|说重点)"
    r"|叫我.{1,8}(?:就行|就好|吧)|(?:回答|回复|答案|代码|变量|注释|单位|价格|日期|金额|文件|邮件|报告).{0,10}(?:统一|一律|尽量|控制|不用|要用|都用|都写|都要|带上)|(?:周末"
    r"|周[一二三四五六日]|晚上|早上).{0,3}(?:我|我们)?(?:一般|从来|都|基本)?不(?!想|好|太|知)"
)
_WHEN_CLAUSE = re.compile(r"(?:的时候|时)(?:请|也|都|要|先|把|用|不|别|尽量|一定|只|务必|给)|(?:的时候|时)$")
"""A clause of time or condition: "when writing code, ..."."""
_ACTION = re.compile(
    r"^(?:请|也|都|要|先|把|用|不要|别|尽量|一定|只|务必|给)|(?:写上|标上|附上|注明|带上|加上)"
)  # "请附上链接" (please attach the link)
_NO_RULE = re.compile(  # "不要紧" (never mind)
    r"不要紧|要不要|必须要吗|可不可|不可能|不得不|不得了|[区特分级识类性]别|别的|能不能|最多的|尽量快|不要了|千万(?:级|元|用户|条|别急)|[\d一二三四五六七八九十]千万"
)
_ONLY_NOW = re.compile(  # "今天" (today)
    r"下个?月|先(?:别|不要|不用|不管)|当时|那时|那天|小时候|以前|最后改|今天|今晚|明天|昨天|这次|这周|下周|上周|刚才|上次|去年|目前|暂时|(?<![出表体])现在(?!起|开始)"
)
_OTHER_PEOPLE = re.compile(  # "老板要求" (the boss demands)
    r"(?:他|她|他们|同事|领导|服务员|客服|老师|老板|上司|导师|医生|合同|说明书|规则|妈妈?|爸爸?|爱人|邻居|物业|网站|对方|系统|脚本|文档|规定|[姐哥弟妹])(?!妹)[^，]{0,8}(?:总是"
    r"|从来|说|写(?:了|道|着|的)|要求|规定|必须|禁止|不让|觉得|认为)"
)
_QUESTION = re.compile(  # "怎么" (how)
    r"吗|呢|是不是|要不要|能不能|可不可以|有没有|会不会|什么|怎么|怎样|如何|哪|多少|多久|几[个点天次]|还是应该|为何|合适|是否|对不对"
)
_LEADING_WORDS = re.compile(  # "另外" (besides)
    r"[\s*]*(?:所以|但是|但|另外说明一下|另外|还有|而且|并且|因此|那么|不过|对了|然后|嗯|好的|好|哦|最后|注意|记住|请注意|同时|顺便|其次|首先)?(?:[,，:：\s])*"
)
_CONTINUATION = re.compile(  # "其他无所谓" (the rest does not matter)
    r".{2,18}(?:无所谓|就够了|就行了?|就好|都行|都可以|没关系|不重要|都会.{1,6}|才行|为主|更好)[。.！!]?$|[\s*]*(?:不(?!过|然|错|好意思|知道|好)|也|但|而|除|都|就|则"
    r"|只|或|并|尤其|包括|哪怕|即使|否则不|如果|除非|以免)|.{0,8}保持"
)
_CONDITION = re.compile(  # "如果下雨" (if it rains)
    r"[\s*]*(?:所以|但|另外|还有|而且)?(?:如果|要是|假如|当|只要|凡是|凡|以后|今后|每次|每当|遇到|涉及|除了|从现在|在).{0,40}|.{1,30}(?:的时候|时|的话|方面|之前|以后|之后)$"
)
_RULE_WITHOUT_CONTENT = re.compile(
    rf"[\s*]*(?:这一点|这个|那个|它|这)?(?:一定要|必须|千万|务必|不要|都要)[^{HAN_AND_HEXAGRAMS}]*$"
    r"|[\s*]*(?:这个|这|那个|它)(?:一定要|必须|务必).{1,4}$"
)
"""A demand whose object is in another sentence: "this is a must"."""
_NO_CONTINUATION = re.compile(r"[\s*]*(?:我|你|他|她|谢|好|行|对|这|那|上次|去年|所以|因为|先看|怎)")  # "谢谢" (thanks)
_OPENS_CONDITION = re.compile(
    r"[\s*]*(?:所以|但|另外|还有|而且)?(?:如果|要是|凡是|凡|每次|每当|遇到|以后凡是|只要)"
)  # "每次" (each time)
_MAX_EXTENDED_CHARS = 80
"""The maximum length of a clause with its continuations."""
_SHORT_SEGMENT_CHARS = 7
"""A segment up to this length usually continues the rule before it."""


def find_clauses(sentence: Sentence, *, announced: bool) -> list[Clause]:
    """Return the rules and preferences of a Chinese sentence, as positions in its text.

    `announced` means that the sentence is an item of a list of rules. Each of its segments is then a rule.
    """
    segments = sentence.segments[: _question_index(sentence)] if sentence.is_question else sentence.segments
    found: list[Clause] = []
    for number, segment in enumerate(segments):
        if found and segment.start < found[-1].end:
            continue
        text = sentence.lower[segment.start : segment.end]
        if not (announced or _states_rule(sentence, segments, number, text)):
            continue
        clause = _extend_clause(sentence, segments, number)
        if clause.end > clause.start:
            found.append(clause)
    return found


def _states_rule(sentence: Sentence, segments: list[Segment], number: int, text: str) -> bool:
    if has_quote(text) or _ONLY_NOW.search(text) or _OTHER_PEOPLE.search(text):
        return False
    if sentence.is_question and _QUESTION.search(text):
        return False
    text = _NO_RULE.sub("  ", text)
    if _RULE_WITHOUT_CONTENT.match(text):
        return False
    if _RULE.search(text):
        return True
    if when := _WHEN_CLAUSE.search(text):
        following = segments[number + 1] if number + 1 < len(segments) else None
        next_text = sentence.lower[following.start : following.end] if following else ""
        return bool(_ACTION.search(text[when.start() + 1 :].lstrip("的时候"))) or bool(_ACTION.search(next_text))
    return False


def _question_index(sentence: Sentence) -> int:
    """Return the index of the segment with which the question begins."""
    number = max(0, len(sentence.segments) - 1)
    while number and _QUESTION.search(sentence.lower, *sentence.segments[number - 1]):
        number -= 1
    return number


def _extend_clause(sentence: Sentence, segments: list[Segment], number: int) -> Clause:
    """Extend a segment that states a rule by the condition before it and the continuations after it."""
    lower, segment = sentence.lower, segments[number]
    lead = _LEADING_WORDS.match(lower, segment.start, segment.end)
    start, end = (lead.end() if lead else segment.start), segment.end
    for following in segments[number + 1 :]:
        text = lower[following.start : following.end]
        first_text = lower[segment.start : segment.end].rstrip("，, ")
        is_complete = end != segment.end or not (_WHEN_CLAUSE.search(first_text) or _OPENS_CONDITION.match(first_text))
        is_short = len(text.strip()) <= _SHORT_SEGMENT_CHARS and not _NO_CONTINUATION.match(text)
        if is_complete and not is_short and not _CONTINUATION.match(text):
            break
        if has_quote(text) or following.end - start > _MAX_EXTENDED_CHARS or _ONLY_NOW.search(text):
            break
        end = following.end
    if number:
        previous = segments[number - 1]
        condition = lower[previous.start : previous.end]
        if _CONDITION.fullmatch(condition) and not has_quote(condition):
            lead = _LEADING_WORDS.match(lower, previous.start, previous.end)
            start = lead.end() if lead else previous.start
    while end > start and lower[end - 1] in " ，。；：！,.;:!*":
        end -= 1
    return Clause(start, min(end, start + MAX_CLAUSE_CHARS))
