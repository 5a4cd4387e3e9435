#!/usr/bin/env node
import { readPackage } from '../base/package-root.ts';

const words = process.argv.slice(2);
if (words.length === 1 && /^(-v|--version)$/.test(words[0] ?? '')) {
  process.stdout.write(`${readPackage().version}\n`);
} else {
  // Loading `program.ts` takes longer than starting Node.
  await (await import('../processes/program.ts')).run(words);
}
