import { spawnSync } from 'node:child_process';

/**
 * Programs that check our example files, with their Debian packages. If a program is missing, its
 * tests are skipped and the reason is printed.
 */
const packages = {
  promtool: 'prometheus',
  nginx: 'nginx-light',
  caddy: 'caddy',
  pgbouncer: 'pgbouncer',
  'systemd-analyze': 'systemd',
} as const;

export function isInstalled(program: keyof typeof packages): boolean {
  if (spawnSync('sh', ['-c', `command -v ${program}`], { env: withSystemFolders() }).status === 0)
    return true;
  const name = packages[program];
  process.stderr.write(`What ${program} tries out is not tested: it is missing (apt-get install ${name}).\n`);
  return false;
}

/** PATH includes the system folders, where nginx is installed. */
export function withSystemFolders(): Record<string, string> {
  return { PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin`, HOME: process.env['HOME'] ?? '/' };
}
