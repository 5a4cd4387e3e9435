import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createProgram } from '../../src/cli/program.ts';
import { createTerminal } from '../../src/cli/terminal.ts';
import { listCauses, mendedRejects } from '../../src/load/causes/list-causes.ts';
import { listRejects } from '../../src/load/rejects.ts';
import { requireLoad } from '../../src/postgres/stores/read-loads.ts';
import { applyRules } from '../../src/postgres/stores/rules.ts';
import { acceptFile, type FileOptions } from '../support/load-file.ts';
import { openTestSystem, type TestSystem } from '../support/system.ts';

let t: TestSystem;
beforeAll(async () => {
  t = await openTestSystem({ worker: true });
});
afterAll(() => t?.close());

async function load(content: string, options: FileOptions = {}): Promise<string> {
  const jobId = await acceptFile(t.system, t.environment.environmentId, content, options);
  await t.ended(jobId);
  return jobId;
}

const causesOf = (jobId: string) => listCauses(t.system, t.environment.environmentId, jobId);
const tallyOf = async (jobId: string) =>
  (await requireLoad(t.system, t.environment.environmentId, jobId)).tally;

const { signal } = new AbortController();

async function mended(jobId: string, proposalId: string): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of mendedRejects(t.system, t.environment.environmentId, jobId, proposalId, signal))
    pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

/** Runs the command in this process; what it printed, or the error that it ended with. */
async function sluice(...args: string[]): Promise<string> {
  let printed = '';
  const terminal = {
    ...createTerminal({}),
    print: (text: string) => {
      printed += `${text}\n`;
    },
    write: async (text: string | Uint8Array) => {
      printed += Buffer.from(text as string).toString();
    },
    json: (value: unknown) => {
      printed += JSON.stringify(value);
    },
    inform: () => undefined,
  };
  const cli = { processEnv: t.variables, fromDotEnv: new Set<string>(), terminal, entry: '' };
  await (await createProgram(cli, args)).parseAsync(['node', 'sluice', ...args]);
  return printed;
}

const event = (n: number, time: string) => `track,u${n},opened,${time}`;
const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);

describe('the causes of refused records', () => {
  // proves: causes-exact
  test('are counted exactly over all chunks, and what is proposed mends every record of one when it is loaded', async () => {
    const rows = numbers(900).map((n) => {
      if (n % 3 === 0) return event(n, `${1 + (n % 28)}/${1 + (n % 12)}/2025`);
      return n % 5 === 0 ? event(n, 'N/A') : event(n, '2025-01-01');
    });
    const jobId = await load(`event_type,user_id,event_name,inserted_at\n${rows.join('\n')}\n`, {
      chunkBytes: 2_000,
    });
    const { causes, records, total } = await causesOf(jobId);
    expect([records, total]).toEqual([420, 2]);
    expect(
      causes.map(({ code, column, shape, count, firstRow }) => [code, column, shape, count, firstRow]),
    ).toEqual([
      ['invalid_date', 'inserted_at', '99/99/9999', 300, 1],
      ['invalid_date', 'inserted_at', 'n/a', 120, 6],
    ]);
    const [dates] = causes;
    expect(
      dates?.proposals.map(({ id, accepted, tried, isAmbiguous }) => [
        id.slice(14),
        accepted,
        tried,
        isAmbiguous,
      ]),
    ).toEqual([['day-first', 200, 200, false]]);
    const file = await mended(jobId, dates?.proposals[0]?.id ?? '');
    expect(file.split('\n', 2)).toEqual([
      'event_type,user_id,event_name,inserted_at,sluice_row,sluice_line,sluice_error_code,sluice_message,sluice_column,sluice_raw,sluice_raw_base64',
      expect.stringMatching(/^track,u0,opened,2025-01-01,1,2,invalid_date,/),
    ]);
    expect(await tallyOf(await load(file))).toMatchObject({ read: 300, inserted: 300, rejected: 0 });
  });

  // proves: causes-exact
  test('of NDJSON come back mended as NDJSON, without the records that a load would still refuse', async () => {
    const record = (n: number, time: string) =>
      JSON.stringify({ event_type: 'track', user_id: `j${n}`, event_name: 'e', inserted_at: time });
    const lines = [record(1, '31.12.2025'), record(2, '01.01.2026'), record(3, '31.31.2025')];
    const jobId = await load(`${lines.join('\n')}\n`);
    const [cause] = (await causesOf(jobId)).causes;
    expect(cause?.proposals.map(({ accepted, tried }) => [accepted, tried])).toEqual([
      [2, 3],
      [1, 3],
    ]);
    const file = await mended(jobId, cause?.proposals[0]?.id ?? '');
    const found = file
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { inserted_at: string; sluice_reject: { row: number } });
    expect(found.map((each) => [each.sluice_reject.row, each.inserted_at])).toEqual([
      [1, '2025-12-31'],
      [2, '2026-01-01'],
    ]);
    expect(await tallyOf(await load(file))).toMatchObject({ inserted: 2, rejected: 0 });
  });

  // proves: proposal-complete
  test('are mended by the rules that count now, not by those of their load', async () => {
    const { environmentId } = t.environment;
    const lines = ['a', 'b'].map((page) => `track,r${page},opened,31/12/2025,${page}`);
    const jobId = await load(`event_type,user_id,event_name,inserted_at,page\n${lines.join('\n')}\n`);
    const page = { enum: ['a'], otherwise: 'refuse' } as const;
    await applyRules(t.system.db, environmentId, { events: { properties: { page } } }, null);
    const [dates] = (await causesOf(jobId)).causes;
    expect(dates?.proposals[0]).toMatchObject({ accepted: 1 });
    const file = await mended(jobId, dates?.proposals[0]?.id ?? '');
    expect(await tallyOf(await load(file))).toMatchObject({ read: 1, rejected: 0 });
    await applyRules(t.system.db, environmentId, {}, null);
  });

  test('are printed with what would mend them, and the records of one alone', async () => {
    const jobId = await load('user_id,name,plan\nu1;Ada;pro\nu2;Grace;free\n,Nobody,pro\n');
    const table = await sluice('jobs', 'rejects', jobId, '--by-cause');
    expect(table).toMatch(
      /^Cause +Records +Reason +Shape +For example +Proposal .*\n─.*\n[0-9a-f]{13} +2 +wrong_field_count +1 cell where 3 are named +u1;Ada;pro +semicolon-delimiter +read with a semicolon/,
    );
    const found = JSON.parse(await sluice('jobs', 'rejects', jobId, '--by-cause', '--json')) as {
      data: { id: string }[];
    };
    const [first] = found.data;
    const records = await sluice('jobs', 'rejects', jobId, '--cause', first?.id ?? '', '--json');
    expect((JSON.parse(records) as { row: number }[]).map(({ row }) => row)).toEqual([1, 2]);
    await expect(sluice('jobs', 'rejects', jobId, '--cause', 'x')).rejects.toThrow('the id of a cause');
  });

  test('name a column whatever it is called, and keep the record to the byte', async () => {
    const name = 'a\tb\\n\\.\nc\r\0d\ud83d';
    const lines = [JSON.stringify({ user_id: 'u', [name]: '\0' }), '\\.', '\\N'];
    const jobId = await load(`${lines.join('\n')}\n`, { filename: 'odd.ndjson', format: 'ndjson' });
    const { environmentId } = t.environment;
    const { rejects } = await listRejects(t.system, environmentId, jobId, { limit: 9, after: 0 });
    expect(rejects.map(({ raw }) => Buffer.from(raw).toString())).toEqual(lines);
    expect(rejects[0]?.column).toBe('a\tb\\n\\.\nc\r␀d\ufffd');
    expect((await causesOf(jobId)).records).toBe(3);
  });

  test('of a dry run are told as those of a load', async () => {
    const jobId = await load('user_id,name,plan\nu1,Ada\nu2,Grace,free\n', { dryRun: true });
    const { causes } = await causesOf(jobId);
    expect(causes.map(({ shape, count }) => [shape, count])).toEqual([['2 cells where 3 are named', 1]]);
  });

  test('an id that is none of a proposal is refused, and so is a job of another environment', async () => {
    const jobId = await load('user_id,name,plan\nu1,Ada\n');
    await expect(mended(jobId, 'day-first')).rejects.toThrow('There is no such proposal');
    const other = mendedRejects(
      t.system,
      t.environment.environmentId + 1,
      jobId,
      '0000000000000-trim',
      signal,
    );
    await expect(other.next()).rejects.toThrow('there is no such job');
  });
});
