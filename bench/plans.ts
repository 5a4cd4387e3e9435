import { join } from 'node:path';
import type pg from 'pg';
import { median } from './figures.ts';
import type { JobDetail, Service } from './service.ts';
import { writeUsersFile } from './users-file.ts';

interface Step {
  readonly title: string;
  /** Share of changed rows. `null` if all rows are new. */
  readonly changed: number | null;
}

const steps: readonly Step[] = [
  { title: 'all new', changed: null },
  { title: 'all again, unchanged', changed: 0 },
  { title: '10 % changed', changed: 0.1 },
  { title: 'half changed', changed: 0.5 },
];

/**
 * Alternately plans and loads a file. At first, all its users are new, then all are unchanged, then
 * some are changed. Prints the median times, and their ratio within a turn.
 */
export async function comparePlans(
  service: Service,
  client: pg.Client,
  folder: string,
  { rows, turns }: { readonly rows: number; readonly turns: number },
  print: (line: string) => unknown,
): Promise<void> {
  const results = steps.map(() => ({ plan: [] as number[], load: [] as number[] }));
  for (let turn = 0; turn < turns; turn++) {
    for (const [at, { changed }] of steps.entries()) {
      const path = join(folder, `users-${at}.csv`);
      await writeUsersFile(path, { rows, format: 'csv', changed: changed ?? 0, version: at });
      if (changed === null) await client.query('truncate sluice.users, sluice.companies');
      await client.query('vacuum analyze sluice.users');
      await client.query('checkpoint');
      const plan = await service.load(path, 'text/csv', 'plan=true');
      await client.query('checkpoint');
      const load = await service.load(path, 'text/csv');
      if (JSON.stringify(plan.job.counts) !== JSON.stringify(load.job.counts)) {
        throw new Error(`planned ${JSON.stringify(plan.job.counts)}: ${JSON.stringify(load.job.counts)}`);
      }
      results[at]?.plan.push(plan.seconds);
      results[at]?.load.push(load.seconds);
    }
  }
  print(`${rows} users, 10 columns; median of ${turns} turns\n`);
  print('| file | plan, s | load, s | plan ÷ load |');
  print('|---|---|---|---|');
  for (const [at, { title }] of steps.entries()) {
    const { plan, load } = results[at] ?? { plan: [], load: [] };
    const ratios = plan.map((seconds, turn) => seconds / (load[turn] ?? Number.NaN));
    print(
      `| ${title} | ${median(plan).toFixed(2)} | ${median(load).toFixed(2)} | ${median(ratios).toFixed(2)} |`,
    );
  }
}

/** Loads a file that lacks 1 % of the users, alternately as an ordinary load and as a mirror. */
export async function compareMirrors(
  service: Service,
  client: pg.Client,
  folder: string,
  { rows, turns }: { readonly rows: number; readonly turns: number },
  print: (line: string) => unknown,
): Promise<void> {
  const all = join(folder, 'all.csv');
  const most = join(folder, 'most.csv');
  const missing = Math.floor(rows / 100);
  await writeUsersFile(all, { rows, format: 'csv' });
  await writeUsersFile(most, { rows: rows - missing, format: 'csv' });
  const results = { load: [] as number[], mirror: [] as number[] };
  await client.query('truncate sluice.users, sluice.companies');
  for (let turn = 0; turn < turns; turn++) {
    await service.load(all, 'text/csv');
    await client.query('vacuum analyze sluice.users');
    await client.query('checkpoint');
    results.load.push((await service.load(most, 'text/csv')).seconds);
    await client.query('checkpoint');
    const { job, seconds } = await service.load(most, 'text/csv', 'mirror=remove&entity=users');
    if (job.mirror?.done !== missing) throw new Error(`of ${missing}: ${JSON.stringify(job.mirror)}`);
    results.mirror.push(seconds);
  }
  const ratios = results.mirror.map((seconds, turn) => seconds / (results.load[turn] ?? Number.NaN));
  print(`${rows} users, 1 % missing from the file, the others unchanged; median of ${turns} turns\n`);
  print(
    `load ${median(results.load).toFixed(2)} s, mirror ${median(results.mirror).toFixed(2)} s, mirror ÷ load ${median(ratios).toFixed(2)}`,
  );
}

const times = 200;

/** Milliseconds from sending an array of 100 users until its job is seen to be completed. */
export async function measureLatency(
  service: Service,
): Promise<{ readonly p50: number; readonly p99: number }> {
  const latencies: number[] = [];
  for (let round = 0; round < times; round++) latencies.push(await once(service, round));
  latencies.sort((a, b) => a - b);
  const at = (share: number): number =>
    latencies[Math.min(times - 1, Math.floor(times * share))] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99) };
}

async function once(service: Service, round: number): Promise<number> {
  const users = Array.from({ length: 100 }, (_, n) => ({
    user_id: `latency_${n}`,
    company_id: `cmp_${n % 7}`,
    metadata: { round, plan: 'free', name: `User ${n}` },
  }));
  const startedAt = performance.now();
  const response = await service.fetch('/v1/users/bulk_identify', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ users }),
  });
  const { job_id } = (await response.json()) as { job_id: string };
  for (;;) {
    const job = (await (await service.fetch(`/v1/background_jobs/${job_id}`)).json()) as JobDetail;
    if (job.status === 'completed') return performance.now() - startedAt;
    if (job.status === 'failed') throw new Error(job.failure?.message);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
