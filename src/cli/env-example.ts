import { settings } from '../settings.ts';

const heading = `# Every setting of sluice, with its default. A copy called .env is read from the folder in which sluice is run; the
# environment wins over it, and flags over both. \`sluice config\` shows what is in force.
# Written by \`sluice config --example\`; a test holds it to src/config.ts.
`;

/** The text of .env.example. */
export function renderExample(): string {
  const entries = Object.values(settings).map(
    ({ name, fallback, meaning }) => `# ${meaning}\n${name}=${fallback}\n`,
  );
  return `${heading}\n${entries.join('\n')}`;
}
