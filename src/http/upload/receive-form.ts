import type { Multipart, MultipartFile, MultipartValue } from '@fastify/multipart';
import { inputError } from '../../domain/errors.ts';
import type { ReceivedFile } from '../../load/receive/receive.ts';
import { discardReceived } from '../../load/received-files.ts';
import { cleanFilename } from '../schemas/filename.ts';
import { readUploadOptions } from '../schemas/load-options.ts';
import type { GivenOption } from '../schemas/option-values.ts';
import { explainForm, type Form, formParts, openForm, secondFile } from './form-parts.ts';
import { storeFile, type Upload, type Uploaded } from './upload.ts';

/** The part named file, and options before and after it: what is said after the file counts too. */
export async function receiveForm(upload: Upload, query: readonly GivenOption[]): Promise<Uploaded> {
  const given = [...query];
  let file: StoredPart | null = null;
  try {
    const form = openForm(upload);
    for await (const part of formParts(form, upload)) {
      if (part.type === 'field') given.push(readField(part));
      else if (file !== null) throw secondFile();
      else file = await storePart(upload, form, part, given);
    }
    if (file === null) throw inputError('missing_field', 'The form has no part named file', 'file');
    return complete(upload, file, given);
  } catch (error) {
    if (file !== null) await discardReceived(upload.system, file.received.ref);
    throw error;
  }
}

interface StoredPart {
  readonly received: ReceivedFile;
  readonly filename: string | undefined;
}

function complete({ kind }: Upload, file: StoredPart, given: readonly GivenOption[]): Uploaded {
  const { received } = file;
  const options = readUploadOptions(given, kind.entity);
  if (options.format !== undefined && (options.format === 'csv') !== (received.format === 'csv')) {
    const message = 'format must come before the file, or in the query: the file was read as something else';
    throw inputError('invalid_field', message, `format: ${options.format}; read as: ${received.format}`);
  }
  const filename = options.filename ?? file.filename ?? kind.defaultFilename;
  return { received, filename, options: options.load };
}

async function storePart(
  upload: Upload,
  form: Form,
  part: MultipartFile,
  given: readonly GivenOption[],
): Promise<StoredPart> {
  if (part.fieldname !== 'file') {
    const details = `found: ${String(part.fieldname).slice(0, 100)}`;
    throw inputError('missing_field', 'The file must be in a part named file', details);
  }
  // Options known to be wrong are told before gigabytes have come.
  const options = readUploadOptions(given, upload.kind.entity);
  const filename = cleanFilename(part.filename ?? '');
  const hints = {
    filename: options.filename ?? filename,
    format: options.format,
    contentType: part.mimetype,
    sent: form.sent,
  };
  try {
    return { received: await storeFile(upload, part.file, hints), filename };
  } catch (error) {
    throw explainForm(error);
  }
}

function readField(part: Multipart & MultipartValue): GivenOption {
  const name = String(part.fieldname);
  const { value } = part;
  if (part.valueTruncated) throw inputError('invalid_field', 'The value is too long', name.slice(0, 100));
  return [name, typeof value === 'string' ? value : JSON.stringify(value)];
}
