import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { SectionChange } from '../../../../src/capabilities/configuration/apply.ts';
import { runCommand } from '../../../support/servers/run-command.ts';
import type { TestSystem } from '../../../support/servers/system.ts';

export interface Applied {
  readonly exitCode: number;
  readonly dry_run: boolean;
  readonly environments: readonly {
    readonly environment: string;
    readonly created: boolean;
    readonly written: boolean;
    readonly error: string | null;
    readonly changes: readonly SectionChange[];
  }[];
}

/** A folder with one file per environment. It is removed after the test. */
export async function folderOf(files: Readonly<Record<string, object | string>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-environments-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeFiles(folder, files);
  return folder;
}

/** Replaces the files of the folder. An object is written as JSON, which is also YAML. */
export async function writeFiles(
  folder: string,
  files: Readonly<Record<string, object | string>>,
): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const name of await readdir(folder)) await rm(join(folder, name), { recursive: true });
  for (const [name, content] of Object.entries(files)) {
    const text = typeof content === 'string' ? content : JSON.stringify(content);
    await writeFile(join(folder, name), text);
  }
}

/** Runs `sluice apply … --json` in this process. Throws the error of the command. */
export async function applyFolder(
  t: Pick<TestSystem, 'variables'>,
  folder: string,
  ...options: readonly string[]
): Promise<Applied> {
  const before = process.exitCode;
  try {
    const printed = await runCommand(t as TestSystem, 'apply', folder, '--json', ...options);
    return { ...JSON.parse(printed), exitCode: Number(process.exitCode ?? 0) };
  } finally {
    process.exitCode = before;
  }
}

/** Changes have the form `+ section item`. */
export function linesOf({ environments }: Applied): string[] {
  const signs = { add: '+', change: '~', remove: '-' } as const;
  return environments.flatMap(({ environment, changes }) =>
    changes.map(({ action, section, item }) => `${environment} ${signs[action]} ${section} ${item}`),
  );
}
