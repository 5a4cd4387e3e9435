import { escapeHtml } from './escape-html.ts';

/** The HTML of a message; `body` is HTML already. */
export function htmlPage(title: string, body: readonly string[]): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${escapeHtml(title)}</title></head>
<body>
${body.join('\n')}
</body></html>
`;
}
