import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Finished, preparedDataDir, runCli, startService } from './cli.ts';

type Api = (words: readonly string[], input?: string) => Promise<Finished>;

/**
 * Starts a service. Returns its data directory, and a function that runs `sluice api` on that
 * directory.
 */
async function serve(): Promise<{ readonly dataDir: string; readonly api: Api }> {
  const dataDir = await preparedDataDir();
  const { url } = await startService(dataDir);
  const api: Api = (words, input) =>
    runCli(['api', ...words, '--data-dir', dataDir], {
      env: { PUBLIC_URL: url },
      ...(input === undefined ? {} : { input }),
    });
  return { dataDir, api };
}

describe('sluice api', () => {
  test('a path alone is a GET, fields alone are a POST with a JSON body, and the key of the call is not listed afterwards', async () => {
    const { api, dataDir } = await serve();
    const sent = await api(['v1/identify', '-f', 'user_id=json', '-F', 'metadata={"seats": 7}']);
    expect(sent).toMatchObject({ code: 0, stderr: '' });
    const shown = await api(['v1/users/json']);
    expect(shown).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(shown.stdout)).toMatchObject({ user_id: 'json', metadata: { seats: 7 } });
    const { stdout } = await runCli(['keys', 'list', '--json', '--data-dir', dataDir]);
    expect(JSON.parse(stdout).map(({ label }: { label: string }) => label)).not.toContain('sluice api');
  });

  test('a GET with fields has them in its query, and --paginate prints every page', async () => {
    const { api } = await serve();
    for (const id of ['u1', 'u2', 'u3']) await api(['v1/identify', '-f', `user_id=${id}`]);
    const one = await api(['GET', '/v1/users', '-f', 'prefix=u', '-F', 'limit=2']);
    expect(JSON.parse(one.stdout).data).toHaveLength(2);
    const all = await api(['GET', 'v1/users', '-f', 'prefix=u', '-F', 'limit=2', '--paginate']);
    const pages = all.stdout.trim().split('\n');
    const ids = pages.flatMap((page) =>
      JSON.parse(page).data.map((user: { user_id: string }) => user.user_id),
    );
    expect([pages.length, ids]).toEqual([2, ['u1', 'u2', 'u3']]);
  });

  test('a file and standard input are bodies of the type in their names', async () => {
    const { api, dataDir } = await serve();
    await writeFile(join(dataDir, 'users.csv'), 'user_id\nfrom-file\n');
    const upload = await api(['POST', 'v1/imports', '--input', join(dataDir, 'users.csv')]);
    expect(JSON.parse(upload.stdout)).toMatchObject({ job_id: expect.any(String) });
    const piped = await api(['v1/identify', '--input', '-'], '{"user_id":"piped"}');
    expect(piped).toMatchObject({ code: 0, stderr: '' });
  });

  test('a refusal is printed with exit code 1, and a wrong command line has exit code 2', async () => {
    const { api, dataDir } = await serve();
    const refused = await api(['v1/users/nobody']);
    expect(refused).toMatchObject({ code: 1, stderr: 'sluice: GET /v1/users/nobody: HTTP 404\n' });
    expect(JSON.parse(refused.stdout)).toHaveProperty('errors');
    for (const words of [['https://example.com/v1/users'], ['GET', 'a', 'b'], ['v1/users', '-f', 'nothing']])
      expect(await api(words), words.join(' ')).toMatchObject({ code: 2, stdout: '' });
    const nowhere = await runCli(['api', 'v1/users', '--data-dir', dataDir], {
      env: { PUBLIC_URL: 'http://127.0.0.1:1' },
    });
    expect(nowhere).toMatchObject({ code: 1, stderr: expect.stringContaining('No answer from') });
  });
});
