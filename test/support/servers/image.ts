import { spawnSync } from 'node:child_process';
import { chmod, cp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { only, readDockerfile, repository } from './compose.ts';

/** A folder with the content of the last stage of the Dockerfile. */
export interface Image {
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Program and first arguments, to which the command of a service is appended. */
  readonly entrypoint: readonly string[];
  readonly healthcheck: readonly string[];
  /**
   * An account that owns no file of the image. `undefined` if the test does not run as root, or if
   * the account cannot read the folder.
   */
  readonly account: { readonly uid: number; readonly gid: number } | undefined;
}

const nobody = 65_534;

/**
 * Fills a folder as the last stage of the Dockerfile does, but without Docker. Requires `npm run
 * build`. Copies the package's files without packing them. test/acceptance/package.test.ts checks
 * the packed files.
 */
export async function buildImage(folder: string): Promise<Image> {
  const last = (await readDockerfile()).at(-1)?.instructions ?? [];
  expect(only(last, 'COPY')).toBe('--from=build /build/package ./');
  const manifest = JSON.parse(await readFile(join(repository, 'package.json'), 'utf8')) as {
    readonly files: readonly string[];
  };
  for (const path of ['package.json', ...manifest.files.filter((each) => !each.startsWith('!'))]) {
    await cp(join(repository, path), join(folder, path), { recursive: true });
  }
  await chmod(folder, 0o755);
  const environment = only(last, 'ENV')
    .split(' ')
    .map((each) => each.split('='));
  return {
    folder,
    environment: Object.fromEntries(environment) as Record<string, string>,
    entrypoint: JSON.parse(only(last, 'ENTRYPOINT')) as string[],
    healthcheck: JSON.parse(only(last, 'HEALTHCHECK').replace(/^.*? CMD /, '')) as string[],
    account: chooseAccount(folder),
  };
}

function chooseAccount(folder: string): Image['account'] {
  if (process.geteuid?.() !== 0) return undefined;
  const account = { uid: nobody, gid: nobody };
  const look = `for (const path of ['package.json', 'dist/bundle/main.js']) require('fs').readFileSync(path)`;
  const { status } = spawnSync(process.execPath, ['-e', look], { cwd: folder, ...account });
  return status === 0 ? account : undefined;
}
