import { createReadStream, createWriteStream } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pipeline } from 'node:stream/promises';
import type pg from 'pg';
import { median } from './figures.ts';
import { peaks, resetPeaks, type Service } from './service.ts';
import { columns, plainDialect, type UsersDialect, writeUsersFile } from './users-file.ts';
import { writeWorkbook } from './workbook-file.ts';

const rounds = 3;
const workbookType = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet';

/** All kinds of files contain the same users. */
interface Way {
  readonly name: string;
  readonly file: string;
  readonly type: string;
  readonly options?: Readonly<Record<string, string>>;
  write(path: string, rows: number): Promise<void>;
}

interface Measured extends Way {
  readonly seconds: number[];
  memory: string;
}

const byPosition = columns.map((name, index) => `${index + 1}=${name}`).join(',');

function csv(
  name: string,
  dialect: Partial<UsersDialect>,
  options: Readonly<Record<string, string>> = {},
): Way {
  return {
    name,
    file: `${name.replace(/\W+/g, '-')}.csv`,
    type: 'text/csv',
    options,
    write: (path, rows) =>
      writeUsersFile(path, { rows, format: 'csv', dialect: { ...plainDialect, ...dialect } }),
  };
}

function workbook(name: string, strings: 'inline' | 'shared'): Way {
  return {
    name,
    file: `${strings}.xlsx`,
    type: workbookType,
    write: (path, rows) => writeWorkbook(path, rows, strings),
  };
}

/**
 * `head` precedes the first record, `between` separates the records, and `tail` follows the last
 * one.
 */
function json(name: string, file: string, [head, between, tail]: readonly [string, string, string]): Way {
  async function* layOut(lines: AsyncIterable<string>) {
    yield head;
    let isFirst = true;
    for await (const line of lines) {
      yield isFirst ? line : between + line;
      isFirst = false;
    }
    yield tail;
  }
  return {
    name,
    file,
    type: file.endsWith('.ndjson') ? 'application/x-ndjson' : 'application/json',
    write: async (path, rows) => {
      const draft = `${path}.lines`;
      await writeUsersFile(draft, { rows, format: 'ndjson' });
      const lines = createInterface({ input: createReadStream(draft), crlfDelay: Number.POSITIVE_INFINITY });
      await pipeline(lines, layOut, createWriteStream(path));
      await rm(draft);
    },
  };
}

const plain = csv('CSV', {});
const ways: readonly Way[] = [
  plain,
  csv('CSV with ;', { delimiter: ';' }),
  csv('CSV in Windows-1252', { encoding: 'latin1' }),
  csv('CSV without a header', { hasHeader: false }, { header: 'none', map: byPosition }),
  csv("CSV with ' and \\", { quote: "'", escape: '\\' }, { quote: "'", escape: '\\' }),
  json('NDJSON', 'lines.ndjson', ['', '\n', '\n']),
  json('JSON, one array', 'array.json', ['[', ',\n', ']']),
  json('JSON, array in a document', 'document.json', ['{"meta":{"pages":1},"users":[', ',', ']}']),
  json('JSON side by side', 'side-by-side.json', ['', '', '']),
  workbook('XLSX', 'inline'),
  workbook('XLSX, shared strings', 'shared'),
];

/**
 * Loads files of different kinds with the same new users in turn. Prints median times, rates
 * relative to a plain CSV of the same turn, and peak memory. Then loads workbooks with a tenth of
 * the rows, to show how memory grows.
 */
export async function compareDialects(
  service: Service,
  client: pg.Client,
  folder: string,
  rows: number,
  print: (line: string) => unknown,
): Promise<void> {
  const measured: Measured[] = ways.map((way) => ({ ...way, seconds: [], memory: '' }));
  for (const way of ways) await way.write(join(folder, way.file), rows);
  for (let round = 0; round < rounds; round++) {
    for (const way of measured) await measure(service, client, folder, way, rows);
  }
  print(`${rows} users, 10 columns; median of ${rounds}, in turn; ${process.version}\n`);
  print('| file | MB | seconds | rows/s | of the plain rate | peak RSS, MiB |');
  print('|---|---|---|---|---|---|');
  const [first] = measured;
  for (const way of measured) {
    const { size } = await stat(join(folder, way.file));
    const shares = way.seconds.map((seconds, round) => (first?.seconds[round] ?? Number.NaN) / seconds);
    const seconds = median(way.seconds);
    print(
      `| ${way.name} | ${(size / 1e6).toFixed(0)} | ${seconds.toFixed(2)} | ${Math.round(rows / seconds)} | ${median(shares).toFixed(2)} | ${way.memory} |`,
    );
  }
  for (const way of measured.filter(({ type }) => type === workbookType)) {
    await way.write(join(folder, way.file), rows / 10);
    await measure(service, client, folder, way, rows / 10);
    print(`| ${way.name}, a tenth of the rows | | | | | ${way.memory} |`);
  }
}

async function measure(
  service: Service,
  client: pg.Client,
  folder: string,
  way: Measured,
  rows: number,
): Promise<void> {
  await client.query('truncate sluice.users, sluice.companies');
  await client.query('checkpoint');
  resetPeaks(service.pid);
  const options = new URLSearchParams(way.options).toString();
  const { job, seconds } = await service.load(join(folder, way.file), way.type, options);
  if (job.counts['inserted'] !== rows) throw new Error(`${way.name}: ${JSON.stringify(job.counts)}`);
  way.seconds.push(seconds);
  way.memory = Object.entries(peaks(service.pid))
    .map(([name, mib]) => `${name} ${mib}`)
    .join(', ');
}
