/**
 * The licences of bundled packages, which must be published. The build fails for a licence that is
 * not listed here.
 */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Metafile } from 'esbuild';
import { packageRoot } from '../src/base/package-root.ts';

const allowed = [
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  'MIT',
  'MIT-0',
  'MIT AND BSD-3-Clause',
];

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
  readonly author?: string | { readonly name?: string };
}

interface Part {
  readonly title: string;
  /** All licence texts of the package, or where to read its licence. */
  readonly text: string;
}

/** esbuild does not report the package of the assets of /docs. */
const swaggerUi = { name: 'swagger-ui', within: '@fastify/swagger-ui', license: 'Apache-2.0' };

export async function writeLicences(metafile: Metafile, folder: string): Promise<void> {
  const folders = new Set<string>();
  for (const input of Object.keys(metafile.inputs)) {
    const [path] = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input) ?? [];
    if (path !== undefined) folders.add(path);
  }
  const parts = await Promise.all([...folders].sort().map((path) => readPart(join(packageRoot, path))));
  const titles = new Map<string, string[]>();
  for (const { title, text } of parts) titles.set(text, [...(titles.get(text) ?? []), title]);
  if (parts.some(({ title }) => title.startsWith(`${swaggerUi.within} `))) {
    const title = `${swaggerUi.name} (in ${swaggerUi.within}), ${swaggerUi.license}`;
    titles.set(spdxPage(swaggerUi.license), [title]);
  }
  const sections = [...titles].map(([text, titles]) => `${titles.join('\n')}\n\n${text.trim()}\n`);
  const head = 'This folder holds code of the following packages, each under its own licence.\n';
  const rule = `\n${'-'.repeat(80)}\n\n`;
  await writeFile(join(folder, 'THIRD-PARTY-LICENSES.txt'), [head, ...sections].join(rule));
}

async function readPart(folder: string): Promise<Part> {
  const { name, version, license, author } = JSON.parse(
    await readFile(join(folder, 'package.json'), 'utf8'),
  ) as Manifest;
  if (license === undefined || !allowed.includes(license)) {
    throw new Error(`${name} ${version} has the licence ${license}, which nobody has looked at`);
  }
  const files = (await readdir(folder)).filter((file) => /^(?:licen[cs]e|copying|notice)/i.test(file)).sort();
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')));
  const by = typeof author === 'string' ? author : author?.name;
  const title = `${name} ${version}, ${license}`;
  if (texts.length > 0) return { title, text: texts.join('\n\n') };
  return { title: by === undefined ? title : `${title}, by ${by}`, text: spdxPage(license) };
}

function spdxPage(license: string): string {
  return `Its text: https://spdx.org/licenses/${license}.html`;
}
