#!/usr/bin/env node
// What `npx sluice` runs in a clone: npm would otherwise build it first, for minutes and without a word. The package that
// `npm pack` makes has the bundle itself as its program (`published-manifest.ts`).
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
