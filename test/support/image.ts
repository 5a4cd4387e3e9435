import { spawnSync } from 'node:child_process';
import { chmod, cp, mkdir, readFile, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { only, readDockerfile, repository } from './compose.ts';

/** What the last stage of the Dockerfile would hold, in a folder. */
export interface Image {
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Program and arguments, to which a service adds its command. */
  readonly entrypoint: readonly string[];
  readonly healthcheck: readonly string[];
  /** Somebody who owns nothing in it; undefined where we are not root, or the machine lets nobody read our folders. */
  readonly account: { readonly uid: number; readonly gid: number } | undefined;
}

const nobody = 65_534;

/**
 * Does what the last stage says, without an engine. Needs `npm run build`. Packages are links to those in node_modules, of
 * which only the ones that `npm ci --omit=dev --omit=optional` would install are there.
 */
export async function buildImage(folder: string): Promise<Image> {
  const last = (await readDockerfile()).at(-1)?.instructions ?? [];
  for (const [, text] of last.filter(([instruction]) => instruction === 'COPY')) {
    const [stage] = /(?<=^--from=)\w+/.exec(text) ?? [];
    const paths = text.replace(/^--from=\w+ /, '').split(' ');
    const target = join(folder, paths.at(-1) ?? '');
    for (const source of paths.slice(0, -1)) {
      const destination = /\/$/.test(target) ? join(target, source) : target;
      if (stage === 'packages') await linkPackages(destination);
      else await cp(join(repository, source.replace(/^\/build\//, '')), destination, { recursive: true });
    }
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

interface Lock {
  readonly packages: Readonly<
    Record<string, { readonly dev?: true; readonly optional?: true; readonly devOptional?: true }>
  >;
}

async function linkPackages(folder: string): Promise<void> {
  const { packages } = JSON.parse(await readFile(join(repository, 'package-lock.json'), 'utf8')) as Lock;
  const wanted = Object.entries(packages).filter(
    ([path, { dev, optional, devOptional }]) =>
      /^node_modules\/(?:@[^/]+\/)?[^/]+$/.test(path) && !dev && !optional && !devOptional,
  );
  for (const [path] of wanted) {
    const link = join(folder, path.replace(/^node_modules\//, ''));
    await mkdir(dirname(link), { recursive: true });
    await symlink(join(repository, path), link);
  }
}

function chooseAccount(folder: string): Image['account'] {
  if (process.geteuid?.() !== 0) return undefined;
  const account = { uid: nobody, gid: nobody };
  const look = `for (const path of ['package.json', 'node_modules/pg/package.json']) require('fs').readFileSync(path)`;
  const { status } = spawnSync(process.execPath, ['-e', look], { cwd: folder, ...account });
  return status === 0 ? account : undefined;
}
