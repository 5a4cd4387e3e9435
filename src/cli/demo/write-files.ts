import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { badLines } from './bad-rows.ts';
import { companyCells, companyColumns, csvLine, userCells, userColumns } from './csv-lines.ts';

/** What a correct load of the users file comes to. */
export interface Expected {
  readonly read: number;
  readonly rejected: number;
  readonly superseded: number;
}

const blockChars = 1 << 20;
/** Users that stand in the file once more at its end, with one cell changed. */
const repeated = 50;

export async function writeCompanies(path: string, companies: number): Promise<void> {
  await write(path, companyLines(companies));
}

export async function writeUsers(path: string, users: number, companies: number): Promise<Expected> {
  const bad = badLines(companies);
  const twice = Math.min(repeated, users);
  await write(path, userLines(users, companies, bad, twice));
  return { read: users + twice + bad.length, rejected: bad.length, superseded: twice };
}

function* companyLines(companies: number): Generator<string> {
  yield csvLine(companyColumns);
  for (let n = 0; n < companies; n++) yield csvLine(companyCells(n));
}

/** The bad lines are spread over the file. */
function* userLines(
  users: number,
  companies: number,
  bad: readonly Buffer[],
  twice: number,
): Generator<string | Buffer> {
  const every = Math.max(1, Math.floor(users / (bad.length + 1)));
  yield csvLine(userColumns);
  let used = 0;
  for (let n = 0; n < users; n++) {
    yield csvLine(userCells(n, companies));
    const next = bad[used];
    if (next !== undefined && (n + 1) % every === 0) {
      yield next;
      used++;
    }
  }
  // A very short file has no room between its rows.
  yield* bad.slice(used);
  for (let n = 0; n < twice; n++) yield csvLine(userCells(n, companies).with(-1, '1000'));
}

async function write(path: string, lines: Iterable<string | Buffer>): Promise<void> {
  await pipeline(Readable.from(gather(lines), { objectMode: false }), createWriteStream(path));
}

/** Few large buffers instead of many small ones. */
function* gather(lines: Iterable<string | Buffer>): Generator<Buffer> {
  let text = '';
  for (const line of lines) {
    if (typeof line === 'string') {
      text += line;
      if (text.length < blockChars) continue;
    }
    yield Buffer.from(text);
    text = '';
    if (typeof line !== 'string') yield line;
  }
  if (text !== '') yield Buffer.from(text);
}
