"""部署: a release with a rollback, in Chinese."""

from conversations.filler import log_zh
from conversations.script import Conversation, Turn, assistant, failed, tool, user


def _checks() -> list[Turn]:
    turns: list[Turn] = []
    for node in range(1, 13):
        turns += [
            assistant(
                "",
                tool(
                    "ssh",
                    {"host": f"web-{node:02d}", "command": "df -h /"},
                    f"/dev/vda1 100G {30 + node}G {70 - node}G",
                ),
                tool("read_log", {"host": f"web-{node:02d}"}, log_zh(9, node)),
            ),
            assistant(f"web-{node:02d} 磁盘使用 {30 + node}G，没有问题。"),
        ]
    return turns


CONVERSATION = Conversation(
    name="部署",
    language="zh",
    messages=[
        user("请帮我把支付服务 pay-gateway 从 v2.7.4 升级到 v2.8.0，部署到生产集群 prod-sh-3。"),
        assistant(
            "好的，我先检查当前的版本和节点状态。",
            tool("helm", "list -n pay", "pay-gateway  v2.7.4  deployed  12 pods"),
        ),
        user("注意：发布必须在凌晨2点到4点之间进行，绝对不能动 Redis 的配置。"),
        assistant("明白，我会在发布窗口内操作，并且不修改 Redis 的配置。"),
        user("还有，数据库脚本在 /opt/release/2.8.0/schema.sql，执行之前一定要先备份。"),
        *_checks(),
        assistant("", tool("backup", {"db": "pay", "target": "/backup/pay_20260318.dump"}, "备份完成，大小 36GB")),
        assistant("数据库已经备份到 /backup/pay_20260318.dump，大小 36GB。"),
        assistant(
            "",
            failed(
                "psql",
                {"file": "/opt/release/2.8.0/schema.sql"},
                'ERROR: column "channel_id" of relation "orders" already exists',
            ),
        ),
        assistant("执行脚本报错：orders 表里已经有 channel_id 这一列，原因是上个月的热修复 HF-0217 提前加过。"),
        user("那就跳过这一句，其余的照常执行。"),
        assistant("", tool("psql", {"file": "/opt/release/2.8.0/schema.sql", "skip": 1}, "ALTER TABLE; CREATE INDEX")),
        assistant(
            "脚本执行成功，开始滚动更新。",
            tool("helm", "upgrade pay-gateway --version 2.8.0 -n pay", "STATUS: deployed"),
        ),
        assistant("", failed("http_check", {"url": "https://pay.example.cn/healthz"}, "HTTP 500，连接超时 3000ms")),
        assistant(
            "升级后健康检查失败，错误率升到 18.6%，日志里是 SSLHandshakeException，原因是新镜像缺少银联的根证书。"
        ),
        user("先回滚到 v2.7.4，不要影响早高峰。"),
        assistant("", tool("helm", "rollback pay-gateway -n pay", "Rollback was a success")),
        assistant("已经回滚到 v2.7.4，错误率恢复到 0.03%。"),
        user("证书让安全组的陈立补上，工单号 SEC-8812。我们决定周四凌晨再发一次。"),
        assistant("好的。待办：等待 SEC-8812 完成，补上根证书后重新构建镜像，3月26日凌晨2点再次发布 v2.8.0。"),
    ],
    essentials=[
        "pay-gateway",
        "v2.7.4",
        "v2.8.0",
        "prod-sh-3",
        "必须在凌晨2点到4点之间进行",
        "绝对不能动 Redis 的配置",
        "/opt/release/2.8.0/schema.sql",
        "一定要先备份",
        "/backup/pay_20260318.dump",
        "channel_id",
        "HF-0217",
        "18.6%",
        "SSLHandshakeException",
        "SEC-8812",
        "3月26日",
    ],
)
