import pg from 'pg';
import { median } from './figures.ts';
import { type Service, startService } from './service.ts';

const counts = [1, 2] as const;
const turns = 3;

interface Fleet {
  readonly workers: number;
  readonly service: Service;
  readonly seconds: number[];
}

/**
 * Loads new users with one worker process and with two. Two services, each with its own PostgreSQL,
 * take turns, so that other work on the machine slows both equally. Prints the median times and
 * their ratio.
 */
export async function compareWorkers(
  path: string,
  rows: number,
  print: (line: string) => unknown,
): Promise<void> {
  const fleets: Fleet[] = [];
  try {
    for (const workers of counts)
      fleets.push({ workers, service: await startService({ WORKERS: String(workers) }), seconds: [] });
    for (let turn = 0; turn < turns; turn++) {
      for (const { service, seconds } of fleets) {
        await empty(service);
        seconds.push((await service.load(path, 'text/csv')).seconds);
      }
    }
  } finally {
    for (const { service } of fleets) await service.stop();
  }
  print(`| worker processes | seconds, median of ${turns} | rows/s | against one |`);
  print('|---|---|---|---|');
  const alone = median(fleets[0]?.seconds ?? []);
  for (const { workers, seconds } of fleets) {
    const time = median(seconds);
    print(`| ${workers} | ${time.toFixed(2)} | ${Math.round(rows / time)} | ${(alone / time).toFixed(2)} |`);
  }
}

async function empty({ databaseUrl }: Service): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query('truncate sluice.users, sluice.companies');
  await client.query('checkpoint');
  await client.end();
}
