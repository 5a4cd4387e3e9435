import { describe, expect, test } from 'vitest';
import { listCauses } from '../../src/load/rejects/list-causes.ts';
import { listRejects } from '../../src/load/rejects/rejects.ts';
import { acceptFile, type FileOptions } from '../support/files/load-file.ts';
import { runCommand } from '../support/servers/run-command.ts';
import { systemOfFile } from '../support/servers/system.ts';

const t = await systemOfFile({ worker: true });

async function load(content: string, options: FileOptions = {}): Promise<string> {
  const jobId = await acceptFile(t.system, t.environment.environmentId, content, options);
  await t.ended(jobId);
  return jobId;
}

const causesOf = (jobId: string) => listCauses(t.system, t.environment.environmentId, jobId);

const sluice = (...args: string[]) => runCommand(t, ...args);

const event = (n: number, time: string) => `track,u${n},opened,${time}`;
const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);

describe('the causes of refused records', () => {
  // proves: causes-exact
  test('the causes of rejects are counted exactly over all chunks', async () => {
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
  });

  test('the causes of rejects are printed with an example, and the records of one cause alone', async () => {
    const jobId = await load('user_id,name,plan\nu1;Ada;pro\nu2;Grace;free\n,Nobody,pro\n');
    const table = await sluice('jobs', 'rejects', jobId, '--by-cause');
    expect(table).toMatch(
      /^Cause +Records +Reason +Shape +For example.*\n─.*\n[0-9a-f]{13} +2 +wrong_field_count +1 cell where 3 are named +u1;Ada;pro/,
    );
    const list = JSON.parse(await sluice('jobs', 'rejects', jobId, '--by-cause', '--json')) as {
      data: { id: string }[];
    };
    const [first] = list.data;
    const records = await sluice('jobs', 'rejects', jobId, '--cause', first?.id ?? '', '--json');
    expect((JSON.parse(records) as { row: number }[]).map(({ row }) => row)).toEqual([1, 2]);
    await expect(sluice('jobs', 'rejects', jobId, '--cause', 'x')).rejects.toThrow('the id of a cause');
  });

  test('a cause names a column with odd characters, and its record is stored to the byte', async () => {
    const name = 'a\tb\\n\\.\nc\r\0d\ud83d';
    const lines = [JSON.stringify({ user_id: 'u', [name]: '\0' }), '\\.', '\\N'];
    const jobId = await load(`${lines.join('\n')}\n`, { filename: 'odd.ndjson', format: 'ndjson' });
    const { environmentId } = t.environment;
    const { rejects } = await listRejects(t.system, environmentId, jobId, { limit: 9, after: 0 });
    expect(rejects.map(({ raw }) => Buffer.from(raw).toString())).toEqual(lines);
    expect(rejects[0]?.column).toBe('a\tb\\n\\.\nc\r␀d\ufffd');
    expect((await causesOf(jobId)).records).toBe(3);
  });

  test('a dry run reports the causes of rejects as a load does', async () => {
    const jobId = await load('user_id,name,plan\nu1,Ada\nu2,Grace,free\n', { dryRun: true });
    const { causes } = await causesOf(jobId);
    expect(causes.map(({ shape, count }) => [shape, count])).toEqual([['2 cells where 3 are named', 1]]);
  });
});
