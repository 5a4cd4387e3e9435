/**
 * Usage: `tsx tools/generate-clients.ts FOLDER`. Generates API clients from dist/openapi.json,
 * which `npm run build` writes: types for openapi-fetch, and a client by @hey-api/openapi-ts. Both
 * generators use `typescript-5`, because version 7 lacks an interface that they need.
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
    // Without this function, the type of binary content would be string.
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
