import { settings } from '../src/base/settings.ts';

/** Headings of the sections, by the first setting of each section. */
const subjects: Readonly<Record<string, string>> = {
  HOST: 'Addresses',
  DATA_DIR: 'Database, queue and files',
  INBOX_DIR: 'Inbox',
  API_KEY: 'Keys and log',
  WORKERS: 'Processes and connections',
  MAX_UPLOAD_BYTES: 'Limits',
  FILE_RETENTION_DAYS: 'Retention',
  SMTP_URL: 'Mail and webhooks',
  SCHEDULES_LOCAL_ROOTS: 'Schedules',
  DRAIN_MS: 'Stopping',
};

export function configurationPage(): string {
  const rows = Object.values(settings).flatMap(({ name, fallback, meaning }) => {
    const subject = subjects[name];
    const row = `| \`${name}\` | ${fallback === '' ? '' : `\`${fallback}\``} | ${meaning} |`;
    return subject === undefined
      ? [row]
      : [`\n## ${subject}\n`, '| variable | default | meaning |', '|---|---|---|', row];
  });
  return `# Configuration

Generated from \`src/base/settings.ts\` by \`npm run generate:docs\`.

A setting takes the first value that is given by

1. a flag, for the few settings that have one (\`sluice --help\`);
2. the environment: \`NAME\`, or \`NAME_FILE\`, the path of a file with the value, such as a container's secret (not both);
3. the file \`.env\` in the folder where sluice is run;
4. the default.

\`sluice config\` shows each value in force and where it comes from; \`sluice config --example > .env\` writes a file to
start from. With an invalid value sluice does not start, and names each wrong setting and its rule.
${rows.join('\n')}
`;
}
