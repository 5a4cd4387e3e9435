/**
 * Pages of the docs as sessions in a shell. A page shows files (a block below a line that ends with their name and a
 * colon), commands (blocks `sh`, and calls in tables), and what they answer: a status in a comment below a call, or what
 * was printed in the block below, where … stands for anything (the reference shows answers of any state: there the status
 * alone is compared). What starts a service is not run: the test has started it.
 */
import { execFile } from 'node:child_process';
import { chmod, cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from './cli.ts';

const root = resolve(import.meta.dirname, '../..');
const entry = join(root, 'dist/bundle/main.js');

export interface Page {
  readonly name: string;
  readonly files: ReadonlyMap<string, string>;
  readonly commands: readonly Command[];
  /** The settings that the page gives the service that it starts. */
  readonly settings: Readonly<Record<string, string>>;
}

interface Command {
  readonly text: string;
  /** HTTP statuses that the page gives for the answer; none: it is no call. */
  readonly statuses: readonly string[];
  /** The answer in pieces; … stands between them. */
  readonly answer: readonly string[];
  /** The output, line by line. */
  readonly printed: readonly string[];
}

const looksAtJob = /(background_jobs|exports\/jobs)\/|sluice jobs/;

const starts =
  /^((?:[A-Z_]+=\S+ )*)(?:npx sluice (?:start|demo|serve|work)|npm start|npm ci && npm run demo)(?:\s+#.*)?$/;

export async function readPage(name: string): Promise<Page> {
  const text = await readFile(join(root, name), 'utf8');
  const compared = name === 'docs/api.md' ? [] : undefined;
  const all = [
    ...text.matchAll(/^```sh\n(.*?)^```$(?:\n\n^```\n(.*?)^```$)?|^\| [A-Z]+ \/[^\n]*/gms),
  ].flatMap(([row, block, printed]) => (block === undefined ? readRow(row) : readBlock(block, printed)));
  const started = all.flatMap((command) => starts.exec(command.text)?.[1]?.trim().split(' ') ?? []);
  return {
    name,
    files: new Map(
      [...text.matchAll(/`([\w./-]*\.\w+)`[^`]*:\n\n^```(?!sh\n)\w*\n(.*?)^```$/gms)].map(
        ([, file = '', content = '']) => [file, content],
      ),
    ),
    commands: all
      .filter((command) => !starts.test(command.text))
      .map((command) => ({ ...command, answer: compared ?? command.answer })),
    settings: Object.fromEntries(
      started.filter((each) => each !== '').map((each) => each.split('=') as [string, string]),
    ),
  };
}

function readBlock(block: string, printed = ''): Command[] {
  const lines = block
    .replaceAll('\\\n', '')
    .split('\n')
    .filter((line) => line !== '');
  const commands = lines.flatMap((text, at) => {
    if (text.startsWith('#')) return [];
    const next = lines.findIndex((line, index) => index > at && !line.startsWith('#'));
    const comment = lines
      .slice(at + 1, next < 0 ? lines.length : next)
      .map((line) => line.replace(/^# ?/, ''));
    const [, status, answer = ''] = /^(\d{3})\b(.*)$/s.exec(comment.join('\n')) ?? [];
    return [{ text, statuses: status === undefined ? [] : [status], answer: piecesOf(answer), printed: [] }];
  });
  const last = commands.pop();
  const shown = printed.split('\n').filter((line) => line !== '' && line !== '…');
  return last === undefined ? [] : [...commands, { ...last, printed: shown }];
}

function readRow(row: string): Command[] {
  const [, , call = '', answer = ''] = row.split(/(?<!\\)\|/);
  const text = /`(curl .*?)`/.exec(call)?.[1];
  return text === undefined
    ? []
    : [{ text, statuses: answer.match(/\b\d{3}\b/g) ?? [], answer: [], printed: [] }];
}

/** Without blanks; what is another each time, ids of jobs and moments, counts as …. */
const piecesOf = (answer: string) =>
  answer
    .replaceAll(/\s/g, '')
    .split(/…|\d{4}-\d\d-\d\dT[\d:.]+Z|01[0-9a-f]{6}-[0-9a-f]{4}[0-9a-f-]*/)
    .filter((piece) => piece !== '');

/** A folder in which pages can be followed: the samples, an `npx` that runs what was built, a `curl` that says the status. */
export async function shellFolder(): Promise<string> {
  const folder = await temporaryFolder();
  // Copies: a page writes here.
  for (const name of ['docs/samples', 'examples/presets']) {
    await cp(join(root, name), join(folder, name), { recursive: true });
  }
  await mkdir(join(folder, 'bin'));
  const npx = join(folder, 'bin', 'npx');
  await writeFile(npx, `#!/bin/sh\nshift\nexec "${process.execPath}" "${entry}" "$@"\n`);
  await chmod(npx, 0o755);
  await writeFile(
    join(folder, '.curlrc'),
    'silent\nmax-time = 30\nwrite-out = "%{stderr}\\nHTTP %{http_code}\\n"\n',
  );
  return folder;
}

export async function writeFiles(page: Page, folder: string, fill = (text: string) => text): Promise<void> {
  for (const [name, content] of page.files) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), fill(content));
  }
}

/** Who follows a page: where, which service is asked, and what else the shell has in its environment. */
export interface Reader {
  readonly folder: string;
  readonly url: string;
  readonly key: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Follows a page to its end. Returns the commands that went otherwise than it says; the first that fails ends it. */
export async function followPage(page: Page, { folder, url, key, env }: Reader): Promise<string[]> {
  // What a reader fills in.
  const filled = [
    ['slk_…', key],
    ['http://127.0.0.1:8080', url],
  ] as const;
  const fill = (text: string) => filled.reduce((now, [shown, real]) => now.replaceAll(shown, real), text);
  await writeFiles(page, folder, fill);
  // A reader is slower than a script: jobs have ended when they are looked at.
  const pause = `for status in queued processing; do until curl -s -H "Authorization: Token ${key}" "${url}/v1/background_jobs?limit=1&status=$status" 2>/dev/null | grep -q '^\\[\\]'; do sleep 0.05; done; done`;
  const script = [
    'exec 2>&1',
    ...page.commands.map(({ text }, at) =>
      [...(looksAtJob.test(text) ? [pause] : []), `echo "=== ${at}"`, fill(text)].join('\n'),
    ),
  ];
  const ran = promisify(execFile)('bash', ['-e', '-c', script.join('\n')], {
    cwd: folder,
    env: {
      ...env,
      PATH: `${join(folder, 'bin')}:${process.env['PATH']}`,
      CURL_HOME: folder,
      PORT: new URL(url).port,
    },
  });
  const said = await ran.then(
    ({ stdout }) => stdout,
    (error: { readonly stdout: string }) => `${error.stdout}\nThe shell ended here.`,
  );
  const sections = said.split(/^=== \d+\n/m).slice(1);
  return page.commands.flatMap((command, at) => {
    const section = sections[at] ?? 'It was not reached.';
    return isAsShown(command, section) ? [] : [`${page.name}: ${command.text}\n→ ${section}`];
  });
}

function isAsShown({ statuses, answer, printed }: Command, section: string): boolean {
  if (section.includes('The shell ended here.') || section === 'It was not reached.') return false;
  const status = [...section.matchAll(/^HTTP (\d{3})$/gm)].at(-1)?.[1];
  if (statuses.length > 0 && !statuses.includes(status ?? '')) return false;
  if (!holdsInOrder(section.replaceAll(/\s/g, ''), answer)) return false;
  const lines = section.split('\n').map(even);
  let at = 0;
  return printed.every((line) => {
    const shape = new RegExp(`^${even(line).split('…').map(escaped).join('.*')}$`);
    const found = lines.findIndex((each, index) => index >= at && shape.test(each));
    at = found + 1;
    return found >= 0;
  });
}

function holdsInOrder(text: string, pieces: readonly string[]): boolean {
  let at = 0;
  return pieces.every((piece) => {
    const found = text.indexOf(piece, at);
    at = found + piece.length;
    return found >= 0;
  });
}

/** As wide as its content: widths of columns depend on what else is in a table. */
const even = (line: string) => line.replaceAll(/─+/g, '─').replaceAll(/ +/g, ' ').trim();

const escaped = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
