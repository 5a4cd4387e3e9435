/** `sluice notifications deliveries` and `replay`: what was sent, and sending it again. */
import { MAX_PAGE_SIZE } from '../domain/limits.ts';
import { formatCount } from '../domain/wording.ts';
import { replayDeliveries } from '../notifications/deliveries.ts';
import { renderDelivery } from '../notifications/render-delivery.ts';
import type { Replay } from '../postgres/stores/deliveries.ts';
import { type Delivery, listDeliveries } from '../postgres/stores/deliveries.ts';
import { notifyQueue } from '../tasks/task-kind.ts';
import { defineCommand } from './define-command.ts';
import { UsageError } from './errors.ts';
import { columnsOf, formatTime, printable, printList } from './format.ts';
import { flag, optional, parseCount, parsed, parseIdOf, parseSince } from './options.ts';
import { withEnvironment } from './session.ts';

export const deliveries = defineCommand({
  name: 'deliveries',
  summary: 'what was sent to whom',
  description: 'Lists what was sent and what is still to be sent, newest first.',
  options: {
    failed: flag('--failed', 'only what was given up, or failed and will be tried again'),
    limit: parsed('--limit <n>', `how many, at most ${MAX_PAGE_SIZE}`, parseCount, 20),
  },
  environment: true,
  json: true,
  examples: [
    'sluice notifications deliveries --failed',
    'sluice notifications deliveries --json | jq .[].last_error',
  ],
  inEnvironment: async (call) => {
    const { system, environmentId, flags } = call;
    const { failed, limit } = flags;
    const filter = { failed, limit: Math.min(limit, MAX_PAGE_SIZE) };
    printList(call, {
      items: await listDeliveries(system.db, environmentId, filter),
      render: renderDelivery,
      columns: columnsOf('delivery', 'state', 'event', 'who', '>tries', 'last try', 'answer'),
      cells,
      none: 'There are no such deliveries.',
    });
  },
});

function cells(delivery: Delivery): string[] {
  const { lastAttemptAt, lastStatus, lastError } = delivery;
  return [
    delivery.publicId,
    delivery.state,
    delivery.eventType,
    printable(delivery.target, 40),
    String(delivery.attempts),
    lastAttemptAt === null ? '' : formatTime(lastAttemptAt),
    printable(lastError ?? (lastStatus === null ? '' : `HTTP ${lastStatus}`), 60),
  ];
}

export const replay = defineCommand({
  name: 'replay',
  summary: 'send deliveries again',
  description:
    'Makes one delivery due again, or all since a time that were given up, under the same id and with as many tries as a\n' +
    'new one. Workers send it.',
  argument: optional('[delivery]', 'as `sluice notifications deliveries` shows it'),
  options: {
    failed: flag('--failed', 'all that were given up'),
    since: parsed('--since <when>', 'with --failed: how long ago, such as 24h, or a date', parseSince),
  },
  environment: true,
  json: true,
  examples: [
    'sluice notifications replay 01a1f8d2-fdeb-7b52-9c1e-8a6f0d3c2e42',
    'sluice notifications replay --failed --since 24h',
  ],
  run: async (invocation) => {
    const { argument, flags, terminal, json } = invocation;
    const wanted = readWanted(argument, flags.failed, flags.since);
    await withEnvironment(invocation, async ({ system, environmentId }) => {
      const { publicIds, tasks } = await replayDeliveries(system.db, environmentId, wanted);
      await notifyQueue(system, tasks);
      if (json) terminal.json(publicIds.map((publicId) => ({ delivery_id: publicId })));
      else terminal.print(`Due again: ${formatCount(publicIds.length)}.`);
    });
  },
});

const parseDelivery = parseIdOf('delivery', 'notifications deliveries');

function readWanted(delivery: string | undefined, failed: boolean, since: Date | undefined): Replay {
  if (delivery !== undefined && !failed && since === undefined) return { publicId: parseDelivery(delivery) };
  if (delivery === undefined && failed && since !== undefined) return { failedSince: since };
  throw new UsageError('Name what to send again: the id of a delivery, or --failed --since 24h.');
}
