#!/usr/bin/env node
// Program of `npx sluice` in a clone. Otherwise npm would first build it, for minutes and without
// output. The package of `npm pack` has the bundle itself as its program (`published-manifest.ts`).
import { existsSync } from 'node:fs';

const bundle = new URL('../dist/bundle/main.js', import.meta.url);
if (existsSync(bundle)) {
  await import(bundle.href);
} else {
  process.stderr.write(
    'sluice: This clone is not built. Run `npm ci` in it; after a change, `npm run build`.\n',
  );
  process.exitCode = 1;
}
