import type { Command } from 'commander';
import { MAX_PAGE_SIZE } from '../../domain/limits.ts';
import { type Delivery, listDeliveries } from '../../postgres/stores/deliveries.ts';
import type { Cli } from '../cli.ts';
import { parseCount } from '../import/parse-options.ts';
import { requireEnvironment, withSession } from '../session/session.ts';
import { printable, renderTable } from '../table.ts';

interface Flags {
  readonly env: string;
  readonly failed: boolean;
  readonly limit: number;
  readonly json: boolean;
}

const columns = [
  { title: 'delivery', align: 'right' },
  { title: 'state' },
  { title: 'event' },
  { title: 'who' },
  { title: 'tries', align: 'right' },
  { title: 'last try' },
  { title: 'answer' },
] as const;

export function addNotificationsDeliveriesCommand(notifications: Command, cli: Cli): void {
  notifications
    .command('deliveries')
    .summary('what was told to whom')
    .description('Lists what was told, and what is still to be told, newest first.')
    .option('--failed', 'only what was given up, or failed and will be tried again', false)
    .option('--limit <n>', `how many, at most ${MAX_PAGE_SIZE}`, parseCount, 20)
    .option('--env <name>', 'environment', 'default')
    .option('--json', 'print JSON', false)
    .addHelpText(
      'after',
      '\nExamples:\n  $ sluice notifications deliveries --failed\n  $ sluice notifications deliveries --json | jq .[].last_error',
    )
    .action((flags: Flags, command: Command) => list(cli, command, flags));
}

async function list(cli: Cli, command: Command, { env, failed, limit, json }: Flags): Promise<void> {
  await withSession(cli, command, async (session) => {
    const { environmentId } = await requireEnvironment(session, env);
    const filter = { failed, limit: Math.min(limit, MAX_PAGE_SIZE) };
    const found = await listDeliveries(session.system.db, environmentId, filter);
    if (json) return cli.terminal.json(found.map(render));
    if (found.length === 0) return cli.terminal.note('There are no such deliveries.');
    for (const line of renderTable(columns, found.map(cells))) cli.terminal.print(line);
  });
}

function cells(delivery: Delivery): string[] {
  const { lastAttemptAt, lastStatus, lastError } = delivery;
  return [
    String(delivery.deliveryId),
    delivery.state,
    delivery.eventType,
    printable(delivery.target, 40),
    String(delivery.attempts),
    lastAttemptAt === null ? '' : `${lastAttemptAt.toISOString().slice(0, 19).replace('T', ' ')}Z`,
    printable(lastError ?? (lastStatus === null ? '' : `HTTP ${lastStatus}`), 60),
  ];
}

function render(delivery: Delivery) {
  return {
    delivery_id: delivery.deliveryId,
    event_id: delivery.eventId,
    event_type: delivery.eventType,
    job_id: delivery.jobId,
    subscription_id: delivery.subscriptionId,
    channel: delivery.channel,
    target: delivery.target,
    state: delivery.state,
    attempts: delivery.attempts,
    next_at: delivery.nextAt?.toISOString() ?? null,
    created_at: delivery.createdAt.toISOString(),
    last_attempt_at: delivery.lastAttemptAt?.toISOString() ?? null,
    last_took_ms: delivery.lastTookMs,
    last_status: delivery.lastStatus,
    last_error: delivery.lastError,
    delivered_at: delivery.deliveredAt?.toISOString() ?? null,
  };
}
