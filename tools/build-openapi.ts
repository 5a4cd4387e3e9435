/** Writes dist/openapi.json, which the package exports as `sluice/openapi.json`. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageRoot } from '../src/package-root.ts';
import { describeApi } from './describe-api.ts';

const dist = join(packageRoot, 'dist');
await mkdir(dist, { recursive: true });
await writeFile(join(dist, 'openapi.json'), `${JSON.stringify(await describeApi(), null, 2)}\n`);
