import { formatCount } from '../format-numbers.ts';
import { eventBody, eventDays } from './events.ts';
import { createMeter } from './meter.ts';
import { postPipelined } from './pipelined-posts.ts';
import type { DemoStage } from './show-loads.ts';

/** Events of three months, each tracked by a request of its own and answered when it is committed. */
export async function showEvents({ cli, service, key, flags, signal, heading }: DemoStage): Promise<void> {
  const { events: count, users } = flags;
  cli.terminal.print(
    heading(`8  Track ${formatCount(count)} events over ${eventDays} days, one request each`),
  );
  const now = Date.now();
  const body = (n: number): string => eventBody(n, count, users, now);
  cli.terminal.print(`   POST /v1/track  ${body(0)}`);
  const meter = createMeter(cli.terminal, 'events');
  const startedAt = performance.now();
  const perSecond = (done: number): string =>
    `${formatCount(Math.round((done * 1_000) / (performance.now() - startedAt)))} events/s`;
  const onAnswered = (done: number): void => meter.show(done, count, perSecond(done));
  try {
    await postPipelined({ url: service.url, path: '/v1/track', key, count, body, onAnswered, signal });
  } finally {
    meter.end();
  }
  cli.terminal.print(`   ${formatCount(count)} answered 202, each after its commit; ${perSecond(count)}`);
}
