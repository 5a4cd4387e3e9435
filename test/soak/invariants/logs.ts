import { createReadStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Invariant } from './invariant.ts';

/** Our own bugs, as the service itself would call them, and what Node says before it dies. */
const bugs = [
  /"type":"(?:Fault|TypeError|RangeError|ReferenceError)"/,
  /"level":60/,
  /^(?:Uncaught|node:internal)/,
];
const shownChars = 400;

export const logsHaveNoBugs: Invariant = {
  name: 'no log tells of a bug',
  async look({ site }) {
    const folder = join(site.folder, 'logs');
    const found: string[] = [];
    for (const name of await readdir(folder)) {
      for await (const line of createInterface({ input: createReadStream(join(folder, name)) })) {
        if (found.length < 20 && bugs.some((bug) => bug.test(line)))
          found.push(`${name}: ${line.slice(0, shownChars)}`);
      }
    }
    return found;
  },
};
