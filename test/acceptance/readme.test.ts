import { execFile } from 'node:child_process';
import { chmod, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { preparedDataDir, startService, temporaryFolder } from './cli.ts';
import { call, type Job } from './service.ts';

const root = resolve(import.meta.dirname, '../..');
const entry = join(root, 'dist/bundle/main.js');

interface Command {
  readonly text: string;
  /** HTTP statuses that the page gives for the answer; none: it is no call. */
  readonly statuses: readonly string[];
}

test('the commands of the README and the API reference work as they stand, in their order, and are answered as they say', async () => {
  const { outcome, calls } = await follow(['README.md', 'docs/api.md']);
  expect(outcome).toEqual([]);
  expect(calls).toBeGreaterThan(20);
});

test('the example of a file whose every row is accounted for works as it stands, and ends with no record refused', async () => {
  const { outcome, jobs } = await follow(['docs/accountable.md']);
  expect(outcome).toEqual([]);
  const counts = { read: 6, inserted: 1, updated: 1, superseded: 1, rejected: 0, amended: 3 };
  const mends = { rejected: 0, read: 1 };
  expect(jobs.slice(0, 4).map((job) => job.counts)).toMatchObject([mends, mends, mends, counts]);
});

/** Runs the commands of the pages, as one session, on a server of its own. `outcome`: those that went otherwise than they say. */
async function follow(names: readonly string[]) {
  const pages = await Promise.all(names.map((name) => readFile(join(root, name), 'utf8')));
  const dataDir = await preparedDataDir();
  const service = await startService(dataDir);
  const commands = pages.flatMap(commandsOf);
  const script = commands
    .map(({ text }, at) => `echo "=== ${at}" >&2\n${text}`)
    .join('\n')
    // What a reader fills in.
    .replaceAll('slk_…', service.key ?? '')
    .replaceAll('http://127.0.0.1:8080', service.url);
  const told = await runInShell(script, await prepareFolder(pages), dataDir);
  const outcome = commands.map(({ text, statuses }, at) => {
    const [, said = ''] = told.split(`=== ${at}\n`);
    const [section = ''] = said.split(/^=== /m);
    const last = [...section.matchAll(/^HTTP (\d{3})$/gm)].at(-1)?.[1];
    return statuses.length === 0 || statuses.includes(last ?? '') ? null : `${text}\n→ ${section}`;
  });
  const ask = async <T>(path: string): Promise<T> =>
    (await (await call(service.url, service.key, path)).json()) as T;
  const newest = await ask<readonly Job[]>('/v1/background_jobs?limit=10');
  return {
    outcome: outcome.filter((each) => each !== null),
    calls: commands.filter(({ statuses }) => statuses.length > 0).length,
    jobs: await Promise.all(newest.map(({ job_id }) => ask<Job>(`/v1/background_jobs/${job_id}`))),
  };
}

/** From the block that sets the variables on: those in blocks, each before the answer that the page shows, and in tables. */
function commandsOf(page: string): Command[] {
  const part = page.slice(page.lastIndexOf('```sh', page.indexOf('H="Authorization')));
  return [...part.matchAll(/^```sh\n(.*?)^```$|^\| [A-Z]+ \/[^\n]*/gms)].flatMap(([row, block]) =>
    block === undefined ? readRow(row) : readBlock(block),
  );
}

function readBlock(block: string): Command[] {
  const lines = block.split('\n').filter((line) => line !== '');
  return lines.flatMap((text, at) => {
    if (text.startsWith('#')) return [];
    const status = /^# (\d{3}) /.exec(lines[at + 1] ?? '')?.[1];
    return [{ text, statuses: status === undefined ? [] : [status] }];
  });
}

function readRow(row: string): Command[] {
  const [, , call = '', answer = ''] = row.split(/(?<!\\)\|/);
  const text = /`(curl .*?)`/.exec(call)?.[1];
  return text === undefined ? [] : [{ text, statuses: answer.match(/\b\d{3}\b/g) ?? [] }];
}

/** A folder with the files that the pages show, the samples, and an `npx` that runs what was built. */
async function prepareFolder(pages: readonly string[]): Promise<string> {
  const folder = await temporaryFolder();
  for (const page of pages) {
    for (const [, name = '', text = ''] of page.matchAll(/`(\w+\.csv)`[^`]*^```\n(.*?)^```$/gms)) {
      await writeFile(join(folder, name), text);
    }
  }
  await symlink(join(root, 'docs'), join(folder, 'docs'));
  await mkdir(join(folder, 'bin'));
  const npx = join(folder, 'bin', 'npx');
  await writeFile(npx, `#!/bin/sh\nshift\nexec "${process.execPath}" "${entry}" "$@"\n`);
  await chmod(npx, 0o755);
  // Without a meter, and with the status of each answer.
  await writeFile(
    join(folder, '.curlrc'),
    'silent\nmax-time = 30\nwrite-out = "%{stderr}\\nHTTP %{http_code}\\n"\n',
  );
  return folder;
}

/** What it wrote to standard error. The first command that fails ends it. */
async function runInShell(script: string, folder: string, dataDir: string): Promise<string> {
  const env = {
    PATH: `${join(folder, 'bin')}:${process.env['PATH']}`,
    CURL_HOME: folder,
    DATA_DIR: dataDir,
    PORT: '0',
  };
  const { stderr } = await promisify(execFile)('bash', ['-e', '-c', script], { cwd: folder, env });
  return stderr;
}
