import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import type { Service } from './service.ts';

/** What is wrong with each time, by how many in a hundred have it. */
const faults: readonly (readonly [share: number, write: (n: number) => string])[] = [
  [40, (n) => `${1 + (n % 28)}/${1 + (n % 12)}/2025`],
  [25, () => 'N/A'],
  [15, (n) => `${1_700_000_000 + n},${n % 10}`],
  [12, (n) => `${1 + (n % 28)} March 2025`],
  [8, () => 'soon'],
];
const turns = 3;

interface Causes {
  readonly data: readonly {
    readonly shape: string;
    readonly count: number;
    readonly proposals: readonly { readonly id: string }[];
  }[];
}

/**
 * A file of events of which every record but one is refused, for five causes, and of the same without a fault; then how long it takes
 * until the causes are known, and one of them is mended.
 */
export async function measureCauses(
  service: Service,
  folder: string,
  rows: number,
  print: (line: string) => void,
): Promise<void> {
  const refused = await writeEvents(join(folder, 'refused.csv'), rows, (n) =>
    n === 0 ? '2025-01-01' : faultOf(n),
  );
  const { job, seconds } = await service.load(refused, 'text/csv');
  print(
    `${job.counts['rejected']} of ${rows} records refused: ${seconds.toFixed(1)} s, ${Math.round(rows / seconds)} records/s`,
  );
  const path = `/v1/background_jobs/${job.job_id}/rejects?group_by=cause`;
  for (let turn = 0; turn < turns; turn++) {
    const startedAt = performance.now();
    const { data } = (await (await service.fetch(path)).json()) as Causes;
    const ms = Math.round(performance.now() - startedAt);
    const found = data.map(({ shape, count, proposals }) => `${count} ${shape} (${proposals.length})`);
    print(`causes, answer ${turn + 1}: ${ms} ms: ${found.join(', ')}`);
  }
  const accepted = await writeEvents(join(folder, 'accepted.csv'), rows, () => '2025-01-01');
  const plain = await service.load(accepted, 'text/csv');
  print(`the same, all taken: ${plain.seconds.toFixed(1)} s, ${Math.round(rows / plain.seconds)} records/s`);
}

function faultOf(n: number): string {
  let left = n % 100;
  for (const [share, write] of faults) {
    if (left < share) return write(n);
    left -= share;
  }
  return '';
}

async function writeEvents(path: string, rows: number, timeOf: (n: number) => string): Promise<string> {
  const file = createWriteStream(path);
  file.write('event_type,user_id,event_name,inserted_at,plan,amount,city\n');
  for (let from = 0; from < rows; from += 10_000) {
    const lines = Array.from({ length: Math.min(10_000, rows - from) }, (_, at) => {
      const n = from + at;
      return `track,user_${n % 50_000},report_opened,"${timeOf(n)}",pro,${n % 977},Vienna\n`;
    });
    if (!file.write(lines.join(''))) await once(file, 'drain');
  }
  file.end();
  await once(file, 'close');
  return path;
}
