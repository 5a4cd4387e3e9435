/**
 * The documentation site. `npm run docs:dev` shows it. `npm run docs:build` writes it to
 * site/.vitepress/dist.
 */
import { copyFile, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { defineConfig } from 'vitepress';
import { anchorOf, pageFiles, placeOf, root, sections, targetOf } from '../pages.ts';

const base = process.env.SITE_BASE ?? '/';

const addressOf = (file: string) =>
  `/${placeOf(file)
    .replace(/index\.md$/, '')
    .replace(/\.md$/, '.html')}`;

/** Files that pages link to and that are not pages, such as samples and the OpenAPI document. */
const linkedFiles = new Set<string>();

export default defineConfig({
  base,
  title: 'sluice',
  description: 'A self-hosted loader and exporter for product-analytics data, on PostgreSQL.',
  srcDir: '..',
  srcExclude: ['README.md', 'site/**', 'src/**', 'test/**', 'dist/**', 'coverage/**', '.*/**'],
  outDir: '.vitepress/dist',
  rewrites: Object.fromEntries(pageFiles.map((file) => [file, placeOf(file)])),
  markdown: {
    // Headings have the same anchors as on GitHub. Text in braces is not an attribute, and `<name>`
    // is not an element.
    anchor: { slugify: anchorOf },
    attrs: { disable: true },
    html: false,
    config(md) {
      const linkInside = md.renderer.rules['link_open'];
      md.renderer.rules['link_open'] = (tokens, at, options, env, self) => {
        const token = tokens[at];
        const href = token.attrGet('href') ?? '';
        if (/^(https?|mailto):/.test(href) || token.attrGet('class') === 'header-anchor') {
          return linkInside(tokens, at, options, env, self);
        }
        const file = env.realPath ?? env.path;
        const target = targetOf(file.slice(root.length + 1), decodeURI(href));
        if (target.kind === 'page') {
          const anchor = target.anchor === '' ? '' : `#${target.anchor}`;
          token.attrSet('href', `/${target.place}${anchor}`);
          return linkInside(tokens, at, options, env, self);
        }
        linkedFiles.add(target.file);
        token.attrSet('href', `${base}files/${target.file}`);
        token.attrSet('target', '_self');
        return self.renderToken(tokens, at, options);
      };
      // Doubled braces are text.
      for (const rule of ['text', 'code_inline']) {
        const inside = md.renderer.rules[rule];
        md.renderer.rules[rule] = (...all) => inside(...all).replaceAll('{{', '&#123;&#123;');
      }
    },
  },
  async buildEnd({ outDir }) {
    for (const file of linkedFiles) {
      await mkdir(dirname(join(outDir, 'files', file)), { recursive: true });
      await copyFile(join(root, file), join(outDir, 'files', file));
    }
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: sections().map(({ title, pages }) => ({ text: title, link: addressOf(pages[0].file) })),
    sidebar: sections().map(({ title, pages }) => ({
      text: title,
      collapsed: title === 'Decisions',
      items: pages.map((page) => ({ text: page.title, link: addressOf(page.file) })),
    })),
  },
});
