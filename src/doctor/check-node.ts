import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageRoot } from '../package-root.ts';
import { type Finding, failed, ok } from './finding.ts';

/** Against the `engines` of package.json, which installers only warn about. */
export async function checkNode(version: string = process.versions.node): Promise<Finding[]> {
  const { engines } = JSON.parse(await readFile(join(packageRoot, 'package.json'), 'utf8')) as {
    engines: { node: string };
  };
  const least = engines.node.replace(/^>=/, '');
  if (isAtLeast(version, least)) return [ok('node', `Node.js ${version}`)];
  return [failed('node', `Node.js ${version}`, `Install Node.js ${least} or newer.`)];
}

/** Whether a dotted version is another one or newer. */
export function isAtLeast(version: string, least: string): boolean {
  const [given, wanted] = [version, least].map((text) =>
    text.split('.').map((part) => Number.parseInt(part, 10) || 0),
  );
  for (const [at, part] of (wanted ?? []).entries()) {
    const own = given?.[at] ?? 0;
    if (own !== part) return own > part;
  }
  return true;
}
