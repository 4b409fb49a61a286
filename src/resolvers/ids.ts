import { isId, isUuid } from '../upstream/call/path.ts';
import { BadInputError, ValidationError } from './errors.ts';

/** The two forms of an id: `uuid` where the spec says so, `id` where it says "string" (docs/assumptions.md, "ids"). */
export type IdForm = 'uuid' | 'id';

const WANTED: Readonly<Record<IdForm, string>> = {
  uuid: 'a UUID, such as 3f2b1c9e-8d4a-4f6b-9a57-0c1d2e3f4a5b',
  id: '1 to 64 of the characters A-Z, a-z, 0-9, _ and -',
};

const fits = (form: IdForm, value: string): boolean => (form === 'uuid' ? isUuid(value) : isId(value));

/**
 * Hands an argument's id on, once it can be one.
 *
 * @throws BadInputError that names the argument.
 */
export function argumentId(name: string, form: IdForm, value: string): string {
  if (!fits(form, value)) throw new BadInputError(`Argument "${name}" must be ${WANTED[form]}.`);
  return value;
}

/**
 * The same for a field of a mutation's input.
 *
 * @param path of the field, outermost first.
 * @throws ValidationError `INVALID_INPUT` that carries the path.
 */
export function inputId(path: readonly string[], form: IdForm, value: string): string {
  if (!fits(form, value)) {
    throw new ValidationError('INVALID_INPUT', `${path.join('.')} must be ${WANTED[form]}.`, { field: path });
  }
  return value;
}

/**
 * Hands a text of a mutation's input on, once it says something: an empty one never reaches the service.
 *
 * @param path of the field, outermost first.
 * @throws ValidationError `INVALID_INPUT` that carries the path.
 */
export function filled<T extends string | null | undefined>(path: readonly string[], value: T): T {
  if (value === '') {
    throw new ValidationError('INVALID_INPUT', `${path.join('.')} must not be empty.`, { field: path });
  }
  return value;
}
