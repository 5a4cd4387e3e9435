/**
 * Writes clients of dist/openapi.json (`npm run build`) into a folder, by openapi-typescript (types for openapi-fetch) and by @hey-api/openapi-ts:
 * `tsx tools/generate-clients.ts FOLDER`. Both make code with the TypeScript of before version 7, which has no such
 * interface yet: they are given that of `typescript-5`.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { register } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { packageRoot } from '../src/base/package-root.ts';

const hooks = `export function resolve(name, context, next) {
  return next(name === 'typescript' ? 'typescript-5' : name, context);
}`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);

const [, , folder = 'clients'] = process.argv;
const document = join(packageRoot, 'dist', 'openapi.json');

await writeTypes();
await writeClient();

async function writeTypes(): Promise<void> {
  const { default: openapiTypescript, astToString } = await import('openapi-typescript');
  const { default: ts } = await import('typescript-5');
  const blob = ts.factory.createTypeReferenceNode('Blob');
  const nodes = await openapiTypescript(pathToFileURL(document), {
    // What the document calls binary is a file to send; else it would be a string.
    transform: ({ format }) => (format === 'binary' ? blob : undefined),
  });
  const into = join(folder, 'openapi-typescript');
  await mkdir(into, { recursive: true });
  await writeFile(join(into, 'api.ts'), astToString(nodes));
}

async function writeClient(): Promise<void> {
  const { createClient } = await import('@hey-api/openapi-ts');
  await createClient({
    input: document,
    output: join(folder, 'openapi-ts'),
    logs: { level: 'error', file: false },
  });
}
