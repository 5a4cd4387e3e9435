import type pg from 'pg';
import { least, median } from './figures.ts';
import { type Measured, measure, type Server } from './ingest-run.ts';
import { type Baseline, startBaseline, type Target, targetOf } from './ingest-servers.ts';
import type { RecordKind } from './records.ts';
import type { Service } from './service.ts';

const turns = 3;
const warmUpSeconds = 1;

interface Case {
  readonly kind: RecordKind;
  readonly connections: number;
  readonly baseline: Baseline;
  /**
   * `aim` is the target for the ratio to the baseline: a minimum for a rate (`perSecond`), and a
   * maximum for a latency (`p50`).
   */
  readonly of: 'perSecond' | 'p50';
  readonly aim: number;
}

const cases: readonly Case[] = [
  { kind: 'track', connections: 64, baseline: 'bare', of: 'perSecond', aim: 0.6 },
  { kind: 'track', connections: 512, baseline: 'bare', of: 'perSecond', aim: 0.7 },
  { kind: 'identify', connections: 64, baseline: 'bare', of: 'perSecond', aim: 0.6 },
  { kind: 'identify', connections: 512, baseline: 'bare', of: 'perSecond', aim: 0.7 },
  { kind: 'track', connections: 1, baseline: 'insert', of: 'p50', aim: 1.15 },
];

/** Single records and bare Fastify alternate. A ratio compares runs of the same turn. */
export async function compareSingles(
  client: pg.Client,
  service: Service,
  seconds: number,
  print: (line: string) => void,
): Promise<void> {
  const targets: Record<Server, Target> = {
    bare: await startBaseline('bare', service),
    insert: await startBaseline('insert', service),
    batched: await startBaseline('batched', service),
    sluice: targetOf(service),
  };
  try {
    print(
      '| case | connections | server | turn | req/s | p50, ms | p99, ms | max, ms | stored / answered 202 | records per window | µs of processor per record: server | PostgreSQL | peak RSS, MiB |',
    );
    print('|---|---|---|---|---|---|---|---|---|---|---|---|---|');
    const results: string[] = [];
    for (const { kind, connections, baseline, of, aim } of cases) {
      const ratios: number[] = [];
      const reachable: number[] = [];
      for (let turn = 1; turn <= turns; turn++) {
        const run = async (server: Server): Promise<Measured> => {
          const order = { kind, server, connections, warmUpSeconds, seconds };
          const measured = await measure(client, service, targets[server], order);
          print(`| ${[kind, connections, server, turn, ...cells(measured)].join(' | ')} |`);
          return measured;
        };
        const base = await run(baseline);
        if (kind === 'track' && of === 'perSecond') reachable.push((await run('batched'))[of] / base[of]);
        const result = await run('sluice');
        ratios.push(result[of] / base[of]);
      }
      if (reachable.length > 0) results.push(`       batched ÷ bare: median ${median(reachable).toFixed(2)}`);
      results.push(judge(`${kind}, ${connections} connections, ${of} ÷ ${baseline}`, ratios, of, aim));
    }
    print(`\n${results.join('\n')}`);
  } finally {
    for (const target of Object.values(targets)) await target.stop();
  }
}

function cells({ perSecond, p50, p99, max, stored, accepted, ...more }: Measured): (string | number)[] {
  return [
    Math.round(perSecond),
    ...[p50, p99, max].map((ms) => ms.toFixed(2)),
    `${stored} / ${accepted}`,
    more.perWindow,
    more.cpuMicrosPerRecord,
    more.postgresMicrosPerRecord,
    more.peakMib,
  ];
}

function judge(what: string, ratios: readonly number[], of: Case['of'], aim: number): string {
  const middle = median(ratios);
  const isMet = of === 'p50' ? middle <= aim : middle >= aim;
  const bound = `${of === 'p50' ? '≤' : '≥'} ${aim}`;
  return `${isMet ? 'met   ' : 'MISSED'} ${what} ${bound}: median ${middle.toFixed(2)}, minimum ${least(ratios).toFixed(2)}`;
}
