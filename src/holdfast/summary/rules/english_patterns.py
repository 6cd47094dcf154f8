"""English patterns of commands, conditions and questions. They match clauses in lower case.

The comment beside a pattern is a text that it matches.
"""

from holdfast.summary.rules.judgements import ABOUT_ME, PERSONAL_FACTS
from holdfast.summary.rules.obligations import OBLIGATIONS
from holdfast.summary.rules.phrases import PatternIndex, any_of, phrase, word_set
from holdfast.summary.rules.preferences import FIRST_PERSON
from holdfast.summary.rules.subjectless import SUBJECTLESS

_ANSWER = any_of(
    """answers? / repl(?:y|ies) / responses? / explanations? / e?mails? / messages? / summar(?:y|ies)
    comments? / tone
    wording / suggestions / feedback / reviews / recipes / code / texts? / drafts? / updates / language / sentences
    paragraphs / examples / descriptions / instructions / letters / notes / plans / docstrings / functions / names"""
)
_FILLER = any_of(
    """emojis? / emoticons / disclaimers? / caveats / warnings / apologies / greetings? / intros? / introductions?
    preambles? / pleasantries / small talk / flattery / compliments / praise / jargon / buzzwords / slang / filler
    fluff / sugar-?coating / hand-?holding / cushioning / lectures? / lecturing / morali[sz]ing / sermons / pep talks?
    exclamation (?:marks|points) / headings / headers / markdown / bullet points / bullets / bulleted lists / tables
    recaps? / padding / waffle / formalit(?:y|ies) / niceties / legalese / acronyms / abbreviations / metaphors
    clich[eé]s / puns / jokes / spoilers / footnotes / salutations / sign-offs / theory / history lessons? / backstory
    swearing / profanity / anglicisms / one-liners / comments / semicolons / em dashes / rhetorical questions
    summar(?:y|ies) / repetition / baby talk / corporate speak / marketing (?:speak|talk) / technical terms"""
)
_TONE = any_of(
    """blunt / casual / informal / direct / brutal / technical / formal / frank / short / brief / concise
    simple / plain
    polite / friendly / light / neutral / practical / concrete / crisp / tight / terse / straight / snappy / low-key
    gentle / civil / professional / clean / relaxed / to the point / critical / harsh / strict / specific / honest"""
)
LEADING_WORDS = phrase(
    r"[\"'*\s]{0,4}(?:(?:and|but|so|also|please|then|ok|okay|btw|plus|just|still|well|oh|now|hence|yes|hmm"
    r"|hey|actually|anyway"
    r"|by the way|right|great|thanks|remember|note|important|again|therefore|thus|instead|besides|oh and|next) ){0,5}"
)
"""Words at the beginning of a segment that carry no content."""
NO_BAN_VERBS = word_set(
    """worry mind bother wait think know forget hesitate panic laugh be get rush hurry spend feel apologise
    apologize stress sweat believe care understand see remember recall really have need you we they i want even
    own just go sure like stop let expect make"""
)
"""Verbs after "don't" that usually form no ban: "don't worry"."""
NO_COMMAND_AFTER_ALWAYS = word_set(
    """mind again been was is are were had has have am i you we they he she it the a an so there here easy in on at
    of to wanted loved thought seen heard tried happened get gets got sure welcome possible true works fails
    good better worse too that this nice fun open as one quite really such happy saw glad ready knew did
    grateful felt came found knowing about just will would can could feel know remember said told went took made
    gave felt want hurts and or once"""
)
"""Words after "always" or "never" that form no command: "never mind"."""
BASE_VERBS_IN_S = word_set(
    """pass press discuss process express access address focus miss cross assess dismiss guess"""
)
"""Base forms of verbs that end in s and are therefore not inflected."""
IMPERATIVE_VERBS = word_set(
    """use keep add show give tell run end put quiz begin start answer reply respond write explain ask stop hand
    address include send list mark cite name call round convert format commit push open close check test sign
    post log store save leave quote choose pick take make set limit stick stay work speak talk translate
    summarise summarize repeat remind warn notify inform confirm propose suggest recommend offer book buy order
    plan return provide avoid skip omit exclude treat consider assume prefer place move number label comment
    document finish attach link mention refer report state spell separate split wrap indent switch bring
    prioritise prioritize favour calculate compute deploy ship merge rebase review record note drop create
    generate draft compare present display copy cc deliver pack cook serve measure follow phrase define
    highlight let flag point double-check verify prefix append bold capitalise capitalize tag sort group rank
    wait pause break walk guide teach correct challenge respect ensure say try turn estimate credit anonymise anonymize
    redact mask replace swap substitute strip trim shorten restrict get find go"""
)
"""Verbs that begin an instruction. It is a rule if it also holds beyond the current task."""
ONE_OFF_VERBS = word_set(
    """check list go read find look fix review count delete remove open compare download convert print"""
)
"""Commands that usually apply once, even with "every": "check every file"."""
ALWAYS_OR_NEVER = phrase(  # "never use tabs"
    r"(?:always|never|(?:do not|don't|dont) ever|never ever|under no circumstances|at no time) ([a-z']+)"
)
DO_NOT = phrase(  # "don't use tabs"
    r"(?:do not|don't|dont) (?!tell me (?:i|it|that|you|this|we|he|she|there)\b|get me wrong|[a-z]+ (?:the|it|this"
    r"|that|my) ?[^,]{0,40} (?:until|before) (?:i|i've|we|we've)\b)([a-z']+)"
)
ENCOURAGEMENT = phrase(r"\b(?:give up|quit on|lose hope|stop believing)\b")  # "never give up" is no rule
EXPLICIT_BAN = phrase(
    r"go (?:over|above|beyond|near|below|through|into)|make (?:any|changes|up|assumptions|promises)|let "
    r"|stop (?:before|until)"
    r"|be (?:too |so |overly )?(?:verbose|formal|polite|chatty|brief|wordy|vague|shy of)|just (?:give|tell"
    r"|say|paste|write|show|agree)"
)
"""Phrases that form a ban although their verb is one of NO_BAN_VERBS: "don't go over ..."."""
ONLY_VERB = phrase(  # "only use metric units"
    r"(?:only (?!the |kidding|joking|had|have|has|because|then|a |an |one|two|three|four|problem|thing|issue|question"
    r"|now|just"
    r"|yesterday|today|took"
    r"|works|fails|got|saw|i |we |when i |if i |half|about|recently|after (?:i|we) )[a-z]+)"
)
SCOPED_NO = phrase(
    r"no (?!problem|worries|idea|need|way|rush|hurry|matter|doubt|wonder|thanks|one|longer|clue|luck"
    r"|chance|difference|surprise"
    r"|pressure|stress|big deal|reply|answer|response)[a-z-]+.{0,60}\b(?:please|ever|anywhere|whatsoever"
    r"|at all costs|in (?:my|our|any|all"
    r"|the (?:text|prose|code|output|answers?))|unless (?:i|we)|without (?:my|our|asking)|under any)\b"
)
"""A ban with its scope: "no jargon in my answers"."""
NO_PLURAL = phrase(
    r"no (?!errors?|warnings?|changes?|results?|signs?|symptoms?|luck|repl|news|response|difference|access|idea|time"
    r"|kids|money|word|answers?|one\b|need|problem|worries|matter|rush|thanks|way|clue|longer|doubt|wonder|chance"
    r"|big deal|pressure|surprise|hurry|success|progress|logs?|such|sense|space|signal|more\b(?! than))[a-z-]+(?:s"
    r"|ing|[a-z] [a-z]+s)"
    r" (?:in|on|for|after|before|with|without|from|of any|at|over|above|longer|later|earlier|older|bigger|under|below"
    r"|that|unless|except) "
)
"""A ban at the beginning of a sentence: "no emojis in the codebase"."""
NO_FILLER = phrase(  # "skip the pleasantries"
    r"(?:spare me|skip|drop|cut|lose|leave out|ditch|save|hold|go easy on|ease up on|cut out|cut down on|no|without"
    r"|enough with"
    r"|less|fewer|lay off|forget|avoid|zero|leave off|omit)(?: (?:the|all|any|your|those|of the|with the|me the"
    rf"|more)){{0,2}}"
    rf"(?: [a-z-]+)? {_FILLER}\b"
)
TONE = phrase(  # "be blunt with me"
    rf"(?:you (?:can|may|could|should|don't have to|needn't) )?(?:always |please |just |safely |feel free to )?"
    r"(?:(?:keep|make) (?:it|things|your [a-z]+|(?:the |all "
    rf"|any )?{_ANSWER}) (?:[a-z]+ ){{0,2}}{_TONE}(?: and [a-z]+)? (?:with|for)"
    rf" (?:me|us)|(?:keep|make) (?:your |all |any |all your )?(?!the|this|that){_ANSWER} (?:[a-z]+ ){{0,2}}(?:{_TONE}"
    r"|to (?:a|one|two"
    rf"|three|\d))|be (?:[a-z]+ ){{0,2}}{_TONE} (?:with|to) (?:me|us)|(?:talk|speak) (?:[a-z]+ )?to me (?:like|as|in"
    r"|the way)"
    rf"|(?:talk|speak) {_TONE}(?:ly)? (?:with|to) me|treat me (?:like|as)|(?:use|write|give me|stick to"
    rf"|go with) (?:[a-z]+ ){{0,2}}"
    rf"(?:{_TONE}|british|american|metric|easy|everyday|gender-neutral) (?:english|spelling|language|units|words"
    rf"|{_ANSWER})"
    rf"|assume (?:i|no|that i|we)\b|get (?:straight )?to the point|one (?:question|step|thing|topic) at a time)"
)
_PIECE = any_of(
    """(?:the )?(?:conclusion|answer|bottom line|summary|result|short version|code|reasons?|explanation
    sources?|working|steps|numbers|figures|headline
    verdict|recommendation|bad news|good news|theory|examples?|main point|key point|takeaway|details
    big picture|basics|tl;?dr|questions?|context)"""
)
CONTENT_ORDER = phrase(  # "start with the conclusion"
    r"(?:(?:always )?(?:lead|open|start|begin|finish|close|end|kick off|hit me)(?: (?:off|out|your [a-z]+"
    rf"|each [a-z]+|every [a-z]+))? with {_PIECE}\b(?! of (?:the|this))"
    rf"|{_PIECE} (?:first|up front|upfront|at the top|at the end|last)\b|{_PIECE} (?:before|after) {_PIECE}"
    r"|feel free to (?:disagree|correct|push back|swear|challenge|interrupt|contradict|tease|be|criticise|criticize"
    r"|argue|say no)"
    r"|(?:i'd|i would) appreciate (?:it if you|if you) (?:always|never|don't|didn't|kept|used|only|could always)"
    r"|i (?:ask|expect) (?:that you|of you)"
    r"|from you i (?:want|expect|need)|(?:don't|do not|never) (?:sugar-?coat|patroni[sz]e|lecture|coddle|mollycoddle)"
    r"|you (?:should|shouldn't|needn't|ought to|are to|may|can|have to|will)(?: not| always| never| only"
    r"| also)?(?! see| find| notice| have seen)"
    r" [a-z]+ [^\x1a?]{0,60}\b(?:me (?:before|first|if|when|whenever|as)|before you|before [a-z]+ing"
    r"|without (?:asking|my|being)|any|anything|every|everything"
    r"|unless|whenever|always|never|at all times)\b)"
)
YOUR_ANSWERS = phrase(  # "your answers should be short"
    rf"(?:your (?:{_ANSWER}|[a-z]+ {_ANSWER}) (?:should|must|need|has to|have to|can|may|ought)|in (?:all |any )?your"
    rf" {_ANSWER})\b"
)
ANYTHING_YOU_DO = phrase(  # "every file you create needs a header"
    r"(?:any|each|every|all|whatever|whichever|everything|anything|no) [^\x1a?]{0,60}\b(?:you|i|we|your|my"
    r"|our)\b(?! (?:said|told"
    r"|wrote|sent|gave|did|have|suggested|recommended|mentioned|made|tried|found|know|can think|want|like|need|see"
    r"|saw))"
    r"[^\x1a?]{1,80}\b(?:should|has to|have to|needs?|must|gets?|starts?|ends?|goes|go|stays?|comes?|begins?|belongs?"
    r"|carr(?:y|ies)|includes?|uses?|is to|are to|ought to|(?:is|are) (?:in|written|signed|formatted|named)|can't"
    r"|cannot|may)\b"
)
NOTHING_THAT = phrase(  # "nothing with nuts"
    r"(?:(?:on|for|at|in|during|with) [^\x1a]{1,40} )?nothing (?:that|which|with|containing|involving"
    r"|longer|over|above|below|more|before|after|older|from) "
)
HANDS_OFF = phrase(  # "stay away from the main branch"
    r"(?:hands off|stay away from|keep away from|stay out of|keep out of|keep your hands off"
    r"|steer clear of|leave .{1,60} (?:alone|untouched|as is|as it is|as they are|unchanged)\b)"
)
KEEP_WITHIN = phrase(  # "keep replies under 100 words"
    r"(?:keep|stay|remain) (?!going|in mind|it\b|this\b|that\b|up\b|posted|me posted|calm"
    r"|safe).{0,80}\b(?:under|below|within|above|at most|short|brief|unchanged|as is|strictly|apart"
    r"|separate|out of)\b"
)
AT_MOST = phrase(  # "at most two options"
    r"(?:at most|no more than|not more than|maximum|max|a maximum of) .{0,6}(?:\d|one|two|three|four|five"
    r"|six|ten|half|a )"
)
EVERYTHING_IN = phrase(  # "everything in euros"
    r"(?:everything|every [a-z-]+|each [a-z-]+|all [a-z-]+) (?:in|with|by|via|as|under|below|above|without"
    r"|on|at) "
)
FINITE_VERB = phrase(  # "the build is slow": a statement, not a request without a verb
    r"\b(?:is|are|was|were|am|has|had|have|does|did|do|will|would|can|could|should|says|said|went|got|came"
    r"|looks|seems|works|fails|'s|'re|i|we|he|she|they)\b"
)
REPORTED_SPEECH = phrase(
    r"\b(?:says?|said|told|wrote|writes|insists|claims|thinks|swears|stands|demands|according"
    r"|documentation|thinking|heard|reads|guess|suppose|whether|wonder|if it is true|true that|why|how"
    r"|what|looks like|seems|apparently|turns out|means that|meant|it looks)\b"
)
"""Words before a statement that make it a report or a guess."""
LASTING = phrase(
    r"\b(?:from (?:now|here|today|this point) on(?:wards?)?|from here on out|going forward"
    r"|in (?:the )?future|henceforth|every (?:single )?time|each time"
    r"|any time|by default|as a (?:general )?rule|until further notice|at all times|no matter (?:what"
    r"|which|how)|once and for all"
    r"|wherever(?! it is)|wherever possible|whenever possible|where possible|for future reference|if at all possible"
    r"|on principle|no exceptions"
    r"|as a general (?:matter|thing|point|principle)|in general|across the board|each and every|any other day"
    r"|(?:in|for|to|on|with|of) (?:everything|anything|whatever|whichever [a-z]+|any [a-z]+|every [a-z]+"
    r"|each [a-z]+|all [a-z]+) (?:you|we|i)\b|whatever you|whenever"
    r"|in (?:all|every|each|any) (?:of )?(?:your|my|our|answers?|repl(?:y|ies)|responses?|messages?|files?"
    r"|languages?|cases?)"
    r"|(?:at|after|before|to|of|for) (?:the (?:end|start|beginning) of )?(?:each|every) [a-z]+|throughout"
    r"|without exception|always|never|every week|every day|every (?:mon|tues|wednes|thurs|fri|satur"
    r"|sun)day)\b"
)
"""Words that make a request hold beyond the current task."""
EXPLICITLY_LASTING = phrase(  # "from now on"
    r"\b(?:from (?:now|here|today) on(?:wards?)?|going forward|whenever|every time|each time|by default"
    r"|until further notice|at all times|in future)\b"
)
FUNCTION_WORDS = word_set(
    """i you he she it we they this that these those the a an my your his her its our their there here what which
    who how why when where is are was were am be do does did have has had can could would will shall should must
    may might not no if so because since as at in on of for with from by to and or but than then while after
    before until unless all some any each every most many much few more less one two three people someone
    somebody everyone everybody nobody things something everything nothing yes ok okay thanks sorry well maybe
    perhaps even also too very just only whenever apparently sometimes often usually always never it's i'm
    that's there's"""
)
"""Words that are no command at the beginning of a clause."""
EACH_OR_ALWAYS = phrase(r"\b(?:every|each(?! other)|always|never)\b")  # "sign every mail"
INSTRUCTION_WORDS = word_set(
    """now here today forward future henceforth every each any default rule notice times matter once everything
    anything whatever whichever all whenever throughout exception always never only please when if answer reply
    respond speak talk"""
)
"""An instruction that holds beyond the current task has one of these words, or begins with an imperative verb."""
COMMAND_WORDS = word_set(
    """never don't dont not only no nothing hands off stay keep leave most than max maximum everything every each
    all stop quit refrain spare skip cut drop less fewer lay lose ditch save hold zero enough easy
    i'd lead open start begin finish close end kick hit free expect first last before after should ought appreciate
    one talk speak treat use whatever your any omit avoid without habit point mind remember forget note aware know
    steer rather call
    assume explain let's warn tell remind ask need prefer my"""
)
"""A sentence with a command has one of these words."""
COMMAND_FIRST_WORDS = word_set(
    """always never do don't dont under at stop quit refrain spare skip leave cut drop make keep bear please
    remember note be you know only no nothing on for in during with hands stay steer remain not max maximum a
    everything every each all call assume explain let's warn tell remind alert notify ask no there's it don't
    needn't prefer go talk speak treat use write give assume get one whatever whichever anything any your avoid omit
    i'd i from answer conclusion bottom summary result short code reasons reason explanation source sources steps
    numbers
    figures headline verdict recommendation bad good theory examples example main key takeaway details big basics
    context
    lead open start begin finish close end kick hit question questions the less fewer lose ditch save hold enough
    ease lay forget zero without feel"""
)
"""The words with which a command begins."""
NO_COMMAND_AFTER_CONDITION = word_set("i we it he she they there that this what how is my")
"""Words after a condition that begin a statement: "when you cite, it helps"."""
CONDITION = phrase(  # "when you write code"
    r"(?:when|whenever|every time|each time|any time|if|for|in|on|at|before|after|unless|until|once"
    r"|as far as|as long as|as soon as|during|with|while"
    r"|by default|from (?:now|here|today)|in (?:the )?future|going forward|generally|in general|to (?:be"
    r"|avoid|keep))\b"
)
GENERIC_CONDITION = phrase(  # "before deploying"
    r"(?:(?:before|after|when|while) [a-z]+ing\b|(?:whatever|wherever|whichever [a-z]+) (?:i|we|you)\b"
    r"|when(?:ever)? (?:i|you|we|somebody|someone|anyone|a|an|there|it comes|[a-z]+ing|in doubt|two|both)\b"
    r"|whenever|every time|each time|any time|at the (?:end|start|beginning) of (?:each|every|a|an|any|my"
    r"|your)|(?:for|in|after|before|with|to|on) (?:every|each|any|all)\b"
    r"|if (?:somebody|someone|anyone|anybody|a|an|any|there (?:are|is)|you(?:'re| are) (?:ever )?(?:unsure"
    r"|uncertain|not (?:sure|certain)|in doubt)|you (?!can\b|could|have|need|ever|manage|want|don't mind|like|think"
    r"|look|check|would"
    r"|will|were|had|are|get a)[a-z']+"
    r"|i (?:ask|say|paste|send|mention|write|forget|make|get|don't|do not)|something|anything|in doubt|both|two)\b)"
)
FUTURE_CONDITION = phrase(  # "whenever you cite"
    r"(?:when(?:ever)? you (?:give|show|send|write|suggest|recommend|explain|answer|reply|quote|list|draft"
    r"|make|plan|book|cite|describe|review|code|name|mention|propose|comment)|if you(?:'re"
    r"| are) (?:ever )?(?:unsure|uncertain|not (?:sure|certain)|in doubt)"
    r"|whenever|every time|each time|when in doubt)\b"
)
ANSWER_LANGUAGE = phrase(  # "reply in German"
    r"(?:answer|reply|respond|speak|talk)(?: (?:to )?me)?(?: only)? in (?:plain |simple )?(?:english"
    r"|german|french|spanish|italian|portuguese"
    r"|dutch|swedish|norwegian|danish|polish|russian|chinese|mandarin|japanese|korean|turkish|arabic|hindi"
    r"|greek|czech)\b"
)
STOP_DOING = phrase(  # "stop apologising"
    r"(?:stop|quit) (?:using|adding|apologi[sz]ing|saying|calling|asking|writing|suggesting|sending|giving"
    r"|putting|repeating|explaining|making|telling)\b"
    r"|refrain from\b|spare me\b|(?:skip|leave out|cut|drop) (?:the |all )?(?:pleasantries|intros?"
    r"|introductions?|small talk|flattery|preamble|disclaimers?|summar(?:y|ies)|greetings?|emojis?"
    r"|apologies)\b"
    r"|(?:stop|quit|enough) (?:with|of) (?:the|all the|these|those)\b|resist the urge to|(?:try|be careful|make sure"
    r"|be sure|take care) (?:not to|never to|you (?:don't|never))\b"
    r"|make (?:it a (?:rule|habit)|a point of)\b"
)
HOW_TO_TREAT_ME = phrase(  # "call me Sam"
    r"(?:call|address) me (?!back|when|if|at|on|tomorrow|later|again)|assume (?:i |no |that i )"
    r"|explain (?:everything |things |it )?(?:to me )?(?:like|as if) i|let's (?:always|never|avoid|stick to|not ever)"
    r"|(?:warn|tell|remind|alert|notify|stop|correct|ask) me (?:if|when|whenever|before|every|as soon as"
    r"|each) (?!this|that|it|you're done|done|you have|you are done|ready|the [a-z]+ is|we)"
    r"|(?:you )?(?:(?:don't|do not|needn't) (?:need|have) to|no need to) (?:explain|apologi[sz]e|repeat"
    r"|thank|greet|comment|ask|summari[sz]e)"
    r"|(?:it|that) (?:would |always |really )?helps? (?:me )?(?:a lot |most )?(?:if|when) (?:you|i)\b"
    r"|i'd appreciate it if you|no [a-z]+(?: [a-z]+)? (?:and|or) no |go easy on (?!me|yourself|him|her|them)"
    r"|prefer [a-z]+ "
)
KEEP_IN_MIND = phrase(  # "remember that I'm deaf"
    r"(?:(?:always |please )?(?:keep|bear) in mind|(?:always |please )?remember|don't forget|do not forget"
    r"|please note|note|be aware|you (?:need|have|should|ought) to know|know) that (?!you|this|it"
    r"|the (?:meeting|deadline)|i (?:need|want|have to|must|only have|asked|told|said))"
)
FORMAT_REQUEST = phrase(  # "prices in euros please"
    r"(?!the |a |an |that |this |one |two |three |my |some |yes|no |more |another "
    r"|same )[a-z-]{4,} (?:[a-z-]+ )?(?:in|as|with|without|by) .{2,80}\bplease\b|(?:short|brief|concise"
    r"|longer|detailed|metric|plain|simple) [a-z]+ .{0,40}\bplease\b"
)
BEFORE_ACTING = phrase(  # "ask before deleting"
    r"\b(?:before (?:you|any|anything|every|each|[a-z]+ing)|first if you|(?:past|by|with) me (?:first"
    r"|before))\b"
)
ALL_OUTPUTS = phrase(  # "round all prices"
    r"\ball (?:of )?(?:the |your |my |our )?(?:summaries|answers|replies|mails|emails|messages|results"
    r"|figures|prices|amounts|dates|times|comments|reports|updates|notes|plots|numbers|distances"
    r"|temperatures|timestamps|names|code|commits|drafts|invoices|quotes)\b"
)
BUT_NOT = phrase(r"\b(?:and|but) (?:not|never) (?:in|as|with|by|the|on|to)\b")  # "in euros but not in dollars"
ONLY_NOW = phrase(
    r"\b(?:today|tonight|this time|right now|at the moment|tomorrow|this (?:week|evening|morning|afternoon"
    r"|weekend|month|once|one|sentence|ticket|paragraph)|by (?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|just this once|currently|last (?:year|time|week|month|night)|yesterday|any ?more questions|for now"
    r"|for this (?!project|repo|team|codebase|company|account|client|customer|chat|conversation|book|novel"
    r"|family)[a-z]+|yet|for the moment|(?:this|the next|that) (?:trip|essay|order|transfer|flight|booking|card"
    r"|letter|meeting|chapter|birthday)"
    r"|in the end)\b"
)
"""Words that limit a request to the current task."""
CLAUSE_END = phrase(
    r",? \(?(?:because|otherwise|since (?:our|i|we|the|it|my|they|he|she|that|your|this)|as (?:i|we|it"
    r"|they|he|she|my|the|our) |so (?:what|how|which|could|can|would|do|does|where|is|are|i |we |the |it "
    r"|he |she |they |my |if |please|that (?:i|we))"
    r"|and (?:i|i'm|i've|we|he|she|it|they|my|our|now|then|so|what|how|which|could|can|do|does|would|is"
    r"|are|the [a-z]+ (?:is|was|has))\b|but (?:i|i'm|i've|we|he|she|it|they|my|our|what|how|the)\b"
    r"|what (?:would|do|is|are|can|should)|how (?:would|do|can|should)|could you|can you|would you|do you"
    r"|- )"
)
"""Words with which something else begins, so that the clause ends before them."""
CONTINUATION = phrase(
    r"[\"'*\s]{0,3}(?:and |but |or )?(?:not|except|unless|if|when|whenever|even|give|only|rather|ever"
    r"|every|each|also in|without|no matter|for (?:anything|everything|whatever|all)|in (?:anything"
    r"|everything|whatever|all|every|my|our)"
    r"|from (?:now|here|today)|including|like|at least|at most|as long as|until|before (?!you ask)"
    r"|whatever|never|always|preferably|no matter|apart from|other than|instead of|as well)\b"
)
"""The beginning of a segment that belongs to the rule before it."""
NO_CONTINUATION = phrase(
    r"(?:so|because|since|i|we|it|he|she|they|my|thanks|thank|ok|okay|right|what|which|how|why|when (?:is"
    r"|does)|could|can|would|do|does|is|are|and then|then|you see|otherwise|as|though|hence|alright|yes"
    r"|no$|that|this|there)\b"
)
"""The beginning of a short segment that does not belong to the rule before it."""
QUESTION_START = phrase(  # "could you ..."
    r"(?:what|which|who|whom|whose|when (?:is|was|does|do|did|will|can|should|would|are)|where|why|how"
    r"|(?:is|are|was|were) (?!to\b)|do (?!not\b)|does|did|can|could|would|will|shall|should|must|may|might"
    r"|have (?:you|i|we)|has|had|am|isn't|aren't"
    r"|don't (?:you|we|i|they)|doesn't|didn't|wouldn't|couldn't|shouldn't|any idea|i wonder"
    r"|i was wondering|wondering|tell me (?:what|which|how|why|if|whether)|(?:in|at|for|on|by|with|from"
    r"|to) (?:what|which))\b"
)
PATTERN_INDEX = PatternIndex(FIRST_PERSON, SUBJECTLESS, ABOUT_ME, PERSONAL_FACTS, OBLIGATIONS)
TRIGGER_WORDS = COMMAND_WORDS.union(INSTRUCTION_WORDS, PATTERN_INDEX.words)
"""A sentence with none of these words holds no rule."""
QUESTION_TAGS = frozenset(
    {"ok?", "okay?", "right?", "alright?", "please?", "got it?", "understood?", "clear?", "deal?", "yes?", "agreed?"}
)
"""Short questions after a statement: "..., ok?"."""
RULE_LIST_HEADING = phrase(  # "my rules:"
    r"\b(?:rules?|guidelines?|preferences|conventions|always|never|instructions|in mind|remember"
    r"|conditions|requirements|standards|principles|don'ts)\b"
)
