import type { FastifyInstance, FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { uploadRecord } from '../../api/upload.ts';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import { createUpload } from '../../load/append-upload.ts';
import { baseUrl } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { named, refusals } from '../schemas/answers.ts';
import { bytesHeader, bytesOf, describeUpload, renderUpload, tusHeaders } from '../schemas/upload-record.ts';
import { cleanFilename } from '../upload/options.ts';
import { uploadLimits } from '../upload/upload.ts';

const createUploadSchema = {
  operationId: 'createUpload',
  summary: 'Create an upload that may come in several requests',
  description:
    'Makes room for a file, by the creation extension of the tus protocol 1.0. Its bytes are then sent to the address in `Location`, from wherever the request before broke off. It is kept for a day after the last of them.',
  tags: ['loads'],
  headers: Type.Object({
    ...tusHeaders,
    'Upload-Length': bytesHeader('Upload-Length', 'Bytes of the whole file.'),
    'Upload-Metadata': Type.Optional(
      Type.String({
        description:
          'Pairs of a name and its value in base64, with commas between: `filename` and `filetype` (a media type) are kept, others are ignored.',
        examples: ['filename dXNlcnMuY3N2,filetype dGV4dC9jc3Y='],
      }),
    ),
  }),
  response: {
    201: {
      description: 'There is room for it; nothing has come.',
      headers: named('Location', 'Tus-Resumable', 'Upload-Offset', 'Upload-Length', 'Upload-Expires'),
      content: { 'application/json': { schema: uploadRecord.ref } },
    },
    ...refusals('missing_field', 'invalid_field', 'empty_file', 'unsupported_version', 'payload_too_large'),
  },
} satisfies FastifySchema;

/** Room for a file that is sent to be inspected or loaded. */
export function createUploadRoute(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'import' }, schema: createUploadSchema } as const;
  app.post('/v1/uploads', options, async (request, reply) => {
    const metadata = readMetadata(request.headers['upload-metadata']);
    const said = {
      filename: cleanFilename(metadata.get('filename') ?? '') ?? null,
      contentType: metadata.get('filetype')?.slice(0, maxMediaTypeChars) ?? null,
      isGzip: false,
    };
    const bytes = bytesOf(request, 'upload-length');
    const upload = await createUpload(
      system,
      environmentId(request),
      bytes,
      said,
      uploadLimits(system.config),
    );
    const base = baseUrl(request, system.config.publicUrl);
    return describeUpload(reply, upload)
      .code(201)
      .header('location', `${base}/v1/uploads/${upload.uploadId}`)
      .send(renderUpload(upload));
  });
}

const maxMediaTypeChars = 255;

const base64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** Of a name that comes twice the last counts. @throws InputError `invalid_field`. */
function readMetadata(header: string | string[] | undefined): Map<string, string> {
  const pairs = String(header ?? '')
    .split(',')
    .map((pair) => pair.trim())
    .filter((pair) => pair !== '');
  return new Map(
    pairs.map((pair) => {
      const [name = '', value = '', more] = pair.split(' ');
      if (more !== undefined || !base64.test(value)) throw notMetadata(name);
      const text = Buffer.from(value, 'base64').toString('utf8');
      return [name, text.replaceAll('\0', '')];
    }),
  );
}

function notMetadata(name: string): Error {
  const message = 'Upload-Metadata has pairs of a name and its value in base64, with commas between';
  return inputError('invalid_field', message, `Upload-Metadata: ${name.slice(0, 100)}`);
}
