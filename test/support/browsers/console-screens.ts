import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../../src/base/package-root.ts';

/** Returns the paths of all screens declared in the source. */
export function screenPaths(): readonly string[] {
  const files = readdirSync(join(packageRoot, 'src'), { recursive: true, encoding: 'utf8' });
  return files
    .filter((file) => /console\/(index\.tsx|screens\.ts)$/.test(file))
    .flatMap((file) => [
      ...readFileSync(join(packageRoot, 'src', file), 'utf8').matchAll(/\bscreen\(\s*'([^']+)'/g),
    ])
    .map(([, path = '']) => path);
}
