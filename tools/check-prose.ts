/**
 * Fails if a comment or a test title breaks a rule in tools/prose-rules.ts. A folder must have
 * exactly as many problems as tools/prose-remaining.json lists for it, so that the number cannot
 * rise. `--lower` updates the list.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../src/base/package-root.ts';
import { findProseProblems } from './prose-rules.ts';

const roots = ['src', 'jobs', 'sql/queries', 'bench', 'tools', 'test'];
/** Generated files, and migrations, which must not change once applied. */
const excluded =
  /^src\/postgres\/schema\.ts$|^src\/capabilities\/[^/]+\/sql\/|^test\/baselines\/|\/node_modules\//;
const remainingFile = join(packageRoot, 'tools/prose-remaining.json');

const canLower = process.argv.includes('--lower');
const remaining: Record<string, number> = JSON.parse(readFileSync(remainingFile, 'utf8'));
const folders = Object.keys(remaining);
const messagesByFolder = new Map<string, string[]>(folders.map((folder) => [folder, []]));
const messages: string[] = [];

for (const file of listFiles()) {
  const source = readFileSync(join(packageRoot, file), 'utf8');
  const folder = folders.find((name) => file.startsWith(`${name}/`));
  const target = folder === undefined ? messages : messagesByFolder.get(folder);
  for (const { line, text, hint } of findProseProblems(source, file.startsWith('test/')))
    target?.push(`${file}:${line}  ${text}  (${hint})`);
}

for (const [folder, problems] of messagesByFolder) {
  const limit = remaining[folder] ?? 0;
  const difference = `${folder} has ${problems.length} problems, and had ${limit}.`;
  if (problems.length > limit) messages.push(...problems, `${difference} Correct the new ones.`);
  else if (problems.length === 0 && canLower) delete remaining[folder];
  else if (canLower) remaining[folder] = problems.length;
  else if (problems.length < limit) messages.push(`${difference} Run: npm run fix`);
}

if (canLower) writeFileSync(remainingFile, `${JSON.stringify(remaining, null, 2)}\n`);
if (messages.length > 0) {
  process.stderr.write(`${messages.join('\n')}\n`);
  process.exitCode = 1;
}

function listFiles(): string[] {
  return roots
    .flatMap((root) =>
      readdirSync(join(packageRoot, root), { recursive: true, encoding: 'utf8' })
        .map((name) => `${root}/${name.replaceAll('\\', '/')}`)
        .sort(),
    )
    .filter((file) => /\.(?:tsx?|sql)$/.test(file) && !excluded.test(file));
}
