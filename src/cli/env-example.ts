import { settings } from '../settings.ts';

const heading = `# Every setting of sluice, with its default. They are read from the environment; flags win over them.
# Written by \`sluice config\`; a test holds it to src/config.ts. To use a copy:  node --env-file=.env dist/bundle/main.js start
`;

/** The text of .env.example. */
export function renderExample(): string {
  const entries = Object.values(settings).map(
    ({ name, fallback, meaning }) => `# ${meaning}\n${name}=${fallback}\n`,
  );
  return `${heading}\n${entries.join('\n')}`;
}
