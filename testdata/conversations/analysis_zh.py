"""数据分析: why sales fell, in Chinese."""

from conversations.filler import log_zh
from conversations.script import Conversation, Turn, assistant, failed, tool, user

_PROVINCES = ["江苏", "浙江", "广东", "山东", "河南", "四川", "湖北", "湖南", "福建", "安徽"]


def _provinces() -> list[Turn]:
    turns: list[Turn] = []
    for at, name in enumerate(_PROVINCES):
        turns += [
            assistant(
                f"查看{name}的数据。",
                tool(
                    "run_sql",
                    {"province": name},
                    {"orders": 18203 + at * 977, "gmv": 2203456 + at * 31007, "share": 3.1 + at},
                ),
                tool("read_log", {"job": name}, log_zh(10, at)),
            ),
            assistant(f"{name}的订单量是{18203 + at * 977}单，和上个月差不多。"),
        ]
    return turns


CONVERSATION = Conversation(
    name="数据分析",
    language="zh",
    messages=[
        user("我想分析一下2月份销售额下降的原因。数据在 warehouse.sales_daily 表里，1月是4820万元，2月只有3975万元。"),
        assistant("好的，我先按渠道和省份拆分。"),
        user("统计的时候必须剔除测试订单，用户手机号一律不得出现在报告里。"),
        assistant("明白，会剔除测试订单，并且不输出手机号。"),
        assistant(
            "",
            failed(
                "run_sql",
                {"sql": "SELECT channel, sum(gmv) FROM warehouse.sales_daily"},
                "查询超时：扫描分区过多，query_id=q_77120",
            ),
        ),
        assistant("第一次查询超时了（q_77120），我加上分区条件再查。"),
        *_provinces(),
        assistant(
            "",
            tool(
                "run_sql",
                {
                    "sql": "SELECT channel, sum(gmv) FROM warehouse.sales_daily "
                    "WHERE dt >= '2026-02-01' GROUP BY channel"
                },
                [
                    {"channel": "小程序", "gmv": 12310000},
                    {"channel": "APP", "gmv": 21440000},
                    {"channel": "门店", "gmv": 6000000},
                ],
            ),
        ),
        assistant("结果显示下降主要来自小程序渠道：从2105万元降到1231万元，占全部降幅的九成以上。"),
        user("小程序为什么会降这么多？"),
        assistant(
            "",
            tool(
                "read_log",
                {"file": "logs/miniapp/2026-02-06.log"},
                "[ERROR] coupon-service 返回 code=40213 优惠券不可用，共 96,204 次",
            ),
        ),
        assistant("原因是2月6日小程序发布 3.12.0 之后，优惠券接口一直返回错误码 40213，直到2月19日才修复。"),
        user("这个结论有没有对照？"),
        assistant("有。APP渠道没有使用新的优惠券接口，同期只下降了1.4%，转化率保持在5.8%左右。"),
        user("好，那就按这个结论写报告，口径采用支付成功的订单而不是下单的订单。"),
        assistant("", tool("write_file", {"path": "reports/2026-02-sales.md"}, "已写入 6.1KB")),
        assistant("报告已经写到 reports/2026-02-sales.md，口径为支付成功的订单。"),
        user("发给王敏之前，还要补上退货率。"),
        assistant("退货率的数据要等财务同步，表 finance.returns 目前只到2月20日，下周一再补。"),
    ],
    essentials=[
        "warehouse.sales_daily",
        "4820万元",
        "3975万元",
        "必须剔除测试订单",
        "用户手机号一律不得出现在报告里",
        "2105万元",
        "1231万元",
        "3.12.0",
        "40213",
        "2月19日",
        "reports/2026-02-sales.md",
        "支付成功的订单",
        "finance.returns",
    ],
)
