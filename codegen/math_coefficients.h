// Written by scripts/fit_math.py; do not edit.
#ifndef QUERN_CODEGEN_MATH_COEFFICIENTS_H_
#define QUERN_CODEGEN_MATH_COEFFICIENTS_H_

namespace quern::math_coefficients {

/// e^r - 1 from power 1, |r| <= log 2, relative to e^r; error 2^-26.0.
inline constexpr double kExpF32[] = {
    0x1p+0,        0x1.00000cp-1,  0x1.55551p-3,   0x1.5549dap-5,
    0x1.1127b2p-7, 0x1.71c518p-10, 0x1.9b87f6p-13,
};

/// 2^r - 1 from power 1, |r| <= 1, relative to 2^r; error 2^-26.1.
inline constexpr double kExp2F32[] = {
    0x1.62e432p-1,  0x1.ebfbfap-3,  0x1.c6af9ap-5,  0x1.3b1f8ep-7,
    0x1.5dbf6ap-10, 0x1.482c06p-13, 0x1.f45514p-17,
};

/// 2^r - 1 from power 1, |r| <= 1/2, relative to 2^r; error 2^-23.3.
inline constexpr double kExp2NarrowF32[] = {
    0x1.62e42ap-1, 0x1.ebf9bcp-3, 0x1.c6b6a4p-5, 0x1.3cea6cp-7, 0x1.5bf7bap-10,
};

/// tanh(x)/x - 1 from power 2 in steps of 2, x <= 0.6875, relative to tanh(x)/x; error 2^-26.2.
inline constexpr double kTanhF32[] = {
    -0x1.555504p-2, 0x1.10fdap-3, -0x1.b70d98p-5, 0x1.4ad672p-6, -0x1.56fd06p-8,
};

/// e^2r - 1 from power 1, |r| <= log 2 / 4, relative to e^2r; error 2^-23.4.
inline constexpr double kExpTwiceF32[] = {
    0x1.fffff6p+0, 0x1.fffdc6p+0, 0x1.555a8p+0, 0x1.573a22p-1, 0x1.0f9fb8p-2,
};

/// sin r - r from power 3 in steps of 2, |r| <= pi/2, relative to sin r; error 2^-26.8.
inline constexpr double kSinF32[] = {-0x1.55554ap-3, 0x1.110e7cp-7, -0x1.9f5e4p-13, 0x1.5cb19ap-19};

/// log(1 + f) - f from power 2, 1 + f between the roots of 1/2 and 2, relative to log(1 + f); error
/// 2^-25.0.
inline constexpr double kLogF32[] = {
    -0x1.fffffap-2, 0x1.5556f4p-2, -0x1.0004b2p-2, 0x1.98d2b8p-3,
    -0x1.535998p-3, 0x1.3182p-3,   -0x1.2519bep-3, 0x1.660916p-4,
};

/// log2(1 + f) - f/log 2 from power 2, the same interval, relative; error 2^-27.7.
inline constexpr double kLog2F32[] = {
    -0x1.71547p-1, 0x1.ec7092p-2,  -0x1.715accp-2, 0x1.277f6cp-2,  -0x1.eab144p-3,
    0x1.a2d588p-3, -0x1.876d14p-3, 0x1.7e6e7ep-3,  -0x1.c48a6cp-4,
};

/// erf(x)/x - 1 from power 0 in steps of 2, x <= 0.875, relative to erf(x)/x; error 2^-26.1.
inline constexpr double kErfF32[] = {
    0x1.06eba6p-3, -0x1.8127p-2, 0x1.ce1fdp-4, -0x1.b6e3eap-6, 0x1.497864p-8, -0x1.440506p-11,
};

/// log2(1 - erf(u + 0)) from power 0, u + 0 from 0.875 to 3.95, as an error of erf; error 2^-29.0.
inline constexpr double kLog2ErfcF32[] = {
    -0x1.93ff98p-13, -0x1.a094a6p+0, -0x1.d654f6p-1, -0x1.34406cp-3,
    0x1.08fa5cp-5,   -0x1.246102p-8, 0x1.30133ap-12,
};

/// log 2 in two parts; the first times 8 bits is exact.
inline constexpr double kLn2F32[] = {0x1.62e4p-1, 0x1.7f7d1cp-20};

/// e^r - 1 from power 1, |r| <= log 2, relative to e^r; error 2^-56.4.
inline constexpr double kExpF64[] = {
    0x1.fffffffffffffp-1,  0x1.fffffffffffefp-2,  0x1.555555555563bp-3,  0x1.5555555556c6fp-5,
    0x1.1111111102407p-7,  0x1.6c16c16989eap-10,  0x1.a01a01ba16fdap-13, 0x1.a01a05b6a912fp-16,
    0x1.71de249d930f2p-19, 0x1.27e1b24862a0fp-22, 0x1.ae74dc29c2769p-26, 0x1.2182a8ba99a35p-29,
    0x1.5d72a05080d85p-33,
};

/// 2^r - 1 from power 1, |r| <= 1, relative to 2^r; error 2^-56.5.
inline constexpr double kExp2F64[] = {
    0x1.62e42fefa39efp-1,  0x1.ebfbdff82c57fp-3,  0x1.c6b08d704a16ep-5,  0x1.3b2ab6fba6345p-7,
    0x1.5d87fe7899891p-10, 0x1.430912f63236fp-13, 0x1.ffcbfc7022882p-17, 0x1.62c025adff598p-20,
    0x1.b525297f0b293p-24, 0x1.e4c9f6bcb39cdp-28, 0x1.e8d95b26811b3p-32, 0x1.c7cbb0f3e4382p-36,
    0x1.7e82c83fb1ba3p-40,
};

/// 2^r - 1 from power 1, |r| <= 1/2, relative to 2^r; error 2^-57.7.
inline constexpr double kExp2NarrowF64[] = {
    0x1.62e42fefa39efp-1,  0x1.ebfbdff82c59dp-3,  0x1.c6b08d704a0cfp-5,  0x1.3b2ab6fba0f8ap-7,
    0x1.5d87fe78b43aap-10, 0x1.4309130c740e6p-13, 0x1.ffcbfbf889617p-17, 0x1.62bfccd1887bcp-20,
    0x1.b5260a8c98946p-24, 0x1.e613534df9e6ep-28, 0x1.e817a2acb529dp-32,
};

/// (e^2r - 1)/2 - r from power 2, |r| <= log 2 / 4, relative to (e^2r - 1)/2; error 2^-55.5.
inline constexpr double kHalfExpm1F64[] = {
    0x1.0000000000005p+0,  0x1.5555555555541p-1,  0x1.555555555211dp-2, 0x1.1111111116fe9p-3,
    0x1.6c16c17f29dfap-5,  0x1.a01a018033fccp-7,  0x1.a019a6b15c418p-9, 0x1.71de6e90bdb1bp-11,
    0x1.28a27fe393055p-13, 0x1.ae94b52217e6bp-16,
};

/// sin r - r from power 3 in steps of 2, |r| <= pi/2, relative to sin r; error 2^-61.6.
inline constexpr double kSinF64[] = {
    -0x1.5555555555555p-3,  0x1.11111111110c9p-7,  -0x1.a01a01a014eb3p-13, 0x1.71de3a52aa8fdp-19,
    -0x1.ae6454d945289p-26, 0x1.6123ce4878c41p-33, -0x1.ae43d9ea0a9ffp-41, 0x1.883bc9ec1d79ap-49,
};

/// log((1 + s)/(1 - s))/s - 2 from power 2 in steps of 2, |s| <= 0.1716, relative to 2; error
/// 2^-59.5.
inline constexpr double kLogF64[] = {
    0x1.5555555555592p-1, 0x1.999999997ff07p-2, 0x1.24924941e3545p-2, 0x1.c71c5211f5854p-3,
    0x1.74663d8beb157p-3, 0x1.39a1d5a6ed94cp-3, 0x1.2f04980ca919ep-3,
};

/// erf(x)/x - 1 from power 0 in steps of 2, x <= 1.0, relative to erf(x)/x; error 2^-56.0.
inline constexpr double kErfF64[] = {
    0x1.06eba8214db68p-3,  -0x1.812746b0379b2p-2,  0x1.ce2f21a0408d1p-4,  -0x1.b82ce311ee0c9p-6,
    0x1.565bccf7e360ep-8,  -0x1.c02db014d2464p-11, 0x1.f9a2b75be629fp-14, -0x1.f4ca20ccab9f6p-17,
    0x1.b97e49f883999p-20, -0x1.5bfe9e9295861p-23, 0x1.d6e5120d50933p-27, -0x1.ab19a85f4a71p-31,
};

/// log2(1 - erf(u + 3)) from power 0, u + 3 from 1.0 to 5.95, as an error of erf; error 2^-59.0.
inline constexpr double kLog2ErfcF64[] = {
    -0x1.eeeb3adffbeb6p+3,  -0x1.230546f4c901fp+3,  -0x1.619826aeef955p+0,  -0x1.5e643860db41dp-7,
    0x1.ffd04efec7229p-10,  -0x1.73ad49077707p-12,  0x1.04b10b7f9b5fbp-14,  -0x1.5878b42edfb74p-17,
    0x1.9e06f206e4e5bp-20,  -0x1.a4f696c42839dp-23, 0x1.2ba8c829d5b39p-26,  0x1.6d5edcccfe5c1p-30,
    -0x1.3921257ba868ep-30, -0x1.adbf827f84259p-34, -0x1.a863a7b377c97p-33, 0x1.64b477aff15aep-35,
    0x1.3b43e8c2bb3a6p-35,  0x1.b8bdcc0a71e4ap-37,  0x1.a9293599d5f92p-40,
};

/// log 2 in two parts; the first times 11 bits is exact.
inline constexpr double kLn2F64[] = {0x1.62e42fefa38p-1, 0x1.ef35793c7673p-45};

/// The half of it.
inline constexpr double kHalfLn2F64[] = {0x1.62e42fefa38p-2, 0x1.ef35793c7673p-46};

/// Where the two pieces of erf meet, for f32 and f64.
inline constexpr double kErfBorder[] = {0x1.cp-1, 0x1p+0};

/// From where on erf rounds to 1, for f32 and f64.
inline constexpr double kErfTop[] = {0x1.f9999ap+1, 0x1.7cccccp+2};

/// What kLog2Erfc is centred on, for f32 and f64.
inline constexpr double kErfCentre[] = {0x0p+0, 0x1.8p+1};

/// Where the two pieces of tanh meet, for f32.
inline constexpr double kTanhBorder[] = {0x1.6p-1};

/// log 2 / 2.
inline constexpr double kHalfLn2[] = {0x1.62e42fefa39efp-2};

/// 1 / pi.
inline constexpr double kOneOverPi[] = {0x1.45f306dc9c883p-2};

/// 1 / log 2 in two parts.
inline constexpr double kLog2EF32[] = {0x1.715476p+0, 0x1.4ae0cp-26};

/// 1 / log 2.
inline constexpr double kLog2EF64[] = {0x1.71547652b82fep+0};

/// pi in two doubles; the first times 22 bits is exact.
inline constexpr double kPiForF32[] = {0x1.921fb544p+1, 0x1.0b4611a626331p-33};

/// pi in four doubles; each but the last times 22 bits is exact.
inline constexpr double kPiForF64[] = {
    0x1.921fb544p+1,
    0x1.0b4611a8p-33,
    -0x1.d9cceba4p-65,
    0x1.b839a252049c1p-103,
};

}  // namespace quern::math_coefficients

#endif  // QUERN_CODEGEN_MATH_COEFFICIENTS_H_
