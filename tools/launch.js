#!/usr/bin/env node
// In a clone, `npx sluice` runs this program. Otherwise, npm would first build the clone, for
// minutes and in silence. The published package runs the bundle (`published-manifest.ts`).
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
